"""Opens the pages that generate thumbnails, so that later page views write nothing."""

import re

from django.contrib.sessions.models import Session
from django.test import Client
from oscar.core.loading import get_model

from seed.common import Dice


def crawl():
    products = get_model("catalogue", "Product").objects.order_by("pk")
    categories = get_model("catalogue", "Category").objects.order_by("pk")
    visitor = Client()
    pages = ["/", "/catalogue/", "/search/?q=larkmoor", "/basket/", "/customer/account/login/", "/dashboard/login/"]
    pages += [f"/catalogue/?page={number}" for number in range(2, 11)]
    pages += [category.get_absolute_url() for category in categories] + [product.get_absolute_url() for product in products]
    for page in pages:
        answer = visitor.get(page)
        assert answer.status_code == 200, f"{page} answered {answer.status_code}"
    boss = Client()
    assert boss.login(username="admin", password="admin1234"), "the administrator cannot log in"
    listed = set()
    for page in ["/dashboard/", "/dashboard/orders/", "/dashboard/reviews/"] + [f"/dashboard/catalogue/?page={number}" for number in range(1, 11)]:
        answer = boss.get(page)
        assert answer.status_code == 200, f"{page} answered {answer.status_code}"
        listed.update(re.findall(r"/dashboard/catalogue/products/(\d+)/", answer.content.decode()))
    # Rows with equal sort keys would appear on two pages or on none, differently in every build.
    assert len(listed) == len(products), f"the back office lists {len(listed)} of {len(products)} products"
    Session.objects.all().delete()
    get_model("auth", "User").objects.filter(username="admin").update(last_login=None)


def count_views():
    """Sets view counts, which the shop itself does not maintain, to the values of a past period."""
    dice, ProductRecord = Dice("views"), get_model("analytics", "ProductRecord")
    for product in get_model("catalogue", "Product").objects.order_by("pk"):
        record, _ = ProductRecord.objects.get_or_create(product=product)
        record.num_views = record.num_purchases * dice.number(9, 30) + dice.number(3, 90)
        record.num_basket_additions = record.num_purchases + dice.number(0, 9)
        record.save()
