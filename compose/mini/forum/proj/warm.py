"""Compiles the templates of the pages that nearly every visit opens."""

from django.template.loader import get_template

PAGES = """log_in.html misago/base.html misago/categories/index.html misago/threadslist/threads.html misago/threadslist/category.html
misago/thread/thread.html misago/search.html misago/profile/posts.html misago/options/noscript.html misago/admin/login.html
misago/admin/dashboard/index.html""".split()


def templates():
    for page in PAGES:
        get_template(page)
