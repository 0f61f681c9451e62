"""Creates the customers, who are the living people of the world, and one administrator."""

import datetime as dt

from django.contrib.auth import get_user_model
from django.contrib.sites.models import Site
from oscar.core.loading import get_model

from seed.common import NOW, WORLD, Dice, password

COUNTRIES = [("US", "USA", "840", "United States"), ("CA", "CAN", "124", "Canada"), ("GB", "GBR", "826", "United Kingdom")]


def address_of(person, country):
    return {"first_name": person["first"], "last_name": person["last"], "line1": person["address"]["line"],
            "line4": person["address"]["town"], "state": WORLD["county"]["full_name"], "postcode": person["address"]["postcode"],
            "country": country}


def make():
    dice, User = Dice("customers"), get_user_model()
    Country, UserAddress = get_model("address", "Country"), get_model("address", "UserAddress")
    Site.objects.update_or_create(pk=1, defaults={"domain": "shopping.arena.test", "name": "One Stop Market"})
    for order, (two, three, number, name) in enumerate(COUNTRIES):
        Country.objects.create(iso_3166_1_a2=two, iso_3166_1_a3=three, iso_3166_1_numeric=number, name=name, printable_name=name,
                               is_shipping_country=True, display_order=len(COUNTRIES) - order)
    country = Country.objects.get(pk="US")
    User.objects.create(username="admin", email="admin@shop.test", first_name="Shop", last_name="Admin", is_staff=True,
                        is_superuser=True, password=password("admin1234"), date_joined=NOW - dt.timedelta(days=1200))
    customers, secret = [], password("Password.123")
    for person in [p for p in WORLD["people"] if not p["historic"]]:
        user = User.objects.create(username=person["username"], email=person["email"], first_name=person["first"],
                                   last_name=person["last"], password=secret,
                                   date_joined=NOW - dt.timedelta(days=dice.number(740, 1100), minutes=dice.number(0, 1400), seconds=len(customers)))
        UserAddress.objects.create(user=user, is_default_for_shipping=True, is_default_for_billing=True, **address_of(person, country))
        user.address = address_of(person, country)
        customers.append(user)
    return customers
