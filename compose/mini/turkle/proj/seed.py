"""Creates the schema and the accounts, with a stopped clock."""

import clock

clock.stop()

import django  # noqa: E402

django.setup()

from django.contrib.auth.hashers import make_password  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from rest_framework.authtoken.models import Token  # noqa: E402

# Forty characters, the length that the framework requires.
TOKEN = "larkmoor" * 5
PEOPLE = [  # name, password, first and last name, administrator
    ("admin", "admin1234", "Turkle", "Admin", True),
    ("worker", "worker1234", "Maud", "Brandt", False),
    ("worker2", "worker1234", "Declan", "Crane", False),
]


def main():
    call_command("migrate", verbosity=0)
    # The guardian package's anonymous user gets an unusable password that differs between builds.
    User.objects.update(password="!")
    for name, password, first, last, is_admin in PEOPLE:
        User.objects.create(username=name, email=f"{name}@turkle.test", first_name=first, last_name=last, is_staff=is_admin,
                            is_superuser=is_admin, password=make_password(password, salt="arenadarenadarenadarena"))
    Token.objects.create(user=User.objects.get(username="admin"), key=TOKEN)


main()
