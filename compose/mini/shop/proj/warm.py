"""Loads the code and templates for which a worker's first visitor would wait: the modules behind the pages, the templates
of the most frequent pages, and data that only rendering loads. Nothing of the database is kept, because it is exchanged
under a running shop: its connections are closed, and no cache contains rows."""

import os
import time
from importlib import import_module

from django.db import OperationalError, connections
from django.template import TemplateDoesNotExist, engines
from django.template.loader import get_template
from django.test import Client
from django.urls import reverse
from PIL import Image

# Modules that the shop imports on first use, in every process.
MODULES = """MySQLdb.connections MySQLdb.cursors django.db.backends.mysql.compiler search_engine haystack.routers
oscar.apps.search.search_indexes whoosh.codec.whoosh3 whoosh.collectors freezegun dateutil.parser encodings.latin_1
sorl.thumbnail.base sorl.thumbnail.kvstores.cached_db_kvstore sorl.thumbnail.engines.pil_engine PIL.JpegImagePlugin
django.contrib.messages.storage.fallback django.conf.locale.en.formats""".split()

PAGES = """home.html sign_in.html oscar/base.html oscar/layout.html oscar/layout_2_col.html
oscar/catalogue/browse.html oscar/catalogue/category.html oscar/catalogue/detail.html
oscar/catalogue/partials/product.html oscar/catalogue/partials/add_to_basket_form.html
oscar/catalogue/partials/add_to_basket_form_compact.html oscar/catalogue/partials/stock_record.html
oscar/catalogue/partials/gallery.html oscar/catalogue/reviews/partials/review_stars.html oscar/search/results.html
oscar/basket/basket.html oscar/basket/partials/basket_content.html oscar/basket/partials/basket_totals.html
oscar/basket/messages/addition.html oscar/basket/messages/new_total.html oscar/partials/nav_primary.html
oscar/partials/nav_accounts.html oscar/partials/mini_basket.html oscar/partials/form_fields.html
oscar/partials/form_field.html oscar/partials/pagination.html oscar/partials/alert_messages.html
oscar/dashboard/index.html oscar/dashboard/login.html oscar/dashboard/layout.html""".split()


# Rendered for a visitor without a session; nothing is written for one.
VISITS = ["/", "/catalogue/", "/search/?q=larkmoor", "/customer/account/login/", "/basket/", "/dashboard/login/", "/healthz"]

# The time limit for the database to answer, in seconds.
PATIENCE = 10


def code():
    for module in MODULES:
        import_module(module)
    # The formats of pictures, for the first thumbnail.
    Image.preinit()
    # Resolving one address loads all of them, and every view with them.
    reverse("shop-home")
    _ = engines["django"].engine.template_context_processors


def templates():
    for page in PAGES:
        try:
            get_template(page)
        except TemplateDoesNotExist:
            continue


def visits():
    """Renders the pages as a worker would."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            connections["default"].ensure_connection()
            break
        except OperationalError:
            time.sleep(0.01)
    else:
        return
    client = Client(SERVER_NAME="localhost")
    for path in VISITS:
        client.get(path)
    connections.close_all()
    held = [link for link in map(target, os.listdir("/proc/self/fd")) if link.startswith("/data/")]
    assert not held, f"the shop would keep {held} open"


def target(descriptor):
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except FileNotFoundError:
        return ""
