"""Runs under a frozen clock from the first migration to the last picture."""

import datetime as dt

from freezegun import freeze_time

from seed.common import NOW

# The search index compares file times with the real clock.
freeze_time(NOW, ignore=["whoosh"]).start()

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import transaction  # noqa: E402

from seed import catalogue, customers, orders, reviews, warm  # noqa: E402


def main():
    started = dt.datetime.now()
    call_command("migrate", verbosity=0)
    with transaction.atomic():
        people = customers.make()
        products = catalogue.make()
    # One transaction for everything would leave its undo log in the database file for good.
    with transaction.atomic():
        orders.make(people, products)
    with transaction.atomic():
        reviews.make(people, products)
    call_command("rebuild_index", interactive=False, verbosity=0)
    warm.count_views()
    warm.crawl()
    assert dt.datetime.now() == started, "the clock was not frozen"
    print(f"seeded {len(products)} products, {len(people)} customers")


main()
