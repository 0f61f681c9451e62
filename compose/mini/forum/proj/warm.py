"""Loads the code and templates for which a worker's first visitor would wait: the modules behind the pages, and the
templates of the most frequent pages. No data from the database is loaded, because a reset exchanges the database while
the forum keeps running.
"""

from importlib import import_module

from django.template import engines
from django.template.loader import get_template
from django.urls import reverse

# Modules that the forum imports on first use, in every process.
MODULES = """django.db.backends.postgresql.compiler django.contrib.messages.storage.fallback django.contrib.sessions.serializers
django.conf.locale.en.formats misago.themes.activetheme misago.menus.menuitems misago.users.usersmenus""".split()

PAGES = """log_in.html misago/base.html misago/categories/index.html misago/threadslist/threads.html misago/threadslist/category.html
misago/thread/thread.html misago/search.html misago/profile/posts.html misago/options/noscript.html misago/admin/login.html
misago/admin/dashboard/index.html""".split()


def code():
    for module in MODULES:
        import_module(module)
    # Resolving one address loads all of them, and every view with them.
    reverse("log-in")
    _ = engines["django"].engine.template_context_processors


def templates():
    for page in PAGES:
        get_template(page)
