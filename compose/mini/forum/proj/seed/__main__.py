"""Runs under a frozen clock from the first migration to the last like."""

import datetime as dt

from freezegun import freeze_time

from seed.common import NOW

freeze_time(NOW).start()

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import transaction  # noqa: E402

from seed import forums, members, settings, talk  # noqa: E402


def main():
    started = dt.datetime.now()
    call_command("migrate", verbosity=0)
    with transaction.atomic():
        settings.make()
        people = members.make()
        places = forums.make()
        talk.make(places, people)
        members.count(people)
        settings.fix_versions()
    assert dt.datetime.now() == started, "the clock was not frozen"


main()
