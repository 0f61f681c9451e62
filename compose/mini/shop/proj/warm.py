"""Compiles the templates of the pages that nearly every visit opens."""

from django.template import TemplateDoesNotExist
from django.template.loader import get_template

PAGES = """home.html sign_in.html oscar/base.html oscar/layout.html oscar/layout_2_col.html oscar/catalogue/browse.html
oscar/catalogue/category.html oscar/catalogue/detail.html oscar/catalogue/partials/product.html
oscar/catalogue/partials/add_to_basket_form.html oscar/catalogue/partials/add_to_basket_form_compact.html
oscar/catalogue/partials/stock_record.html oscar/catalogue/partials/gallery.html oscar/catalogue/reviews/partials/review_stars.html
oscar/search/results.html oscar/basket/basket.html oscar/basket/partials/basket_content.html oscar/partials/nav_primary.html
oscar/partials/nav_accounts.html oscar/partials/mini_basket.html oscar/partials/form_fields.html oscar/partials/form_field.html
oscar/partials/pagination.html oscar/partials/alert_messages.html oscar/dashboard/index.html oscar/dashboard/login.html
oscar/dashboard/layout.html""".split()


def templates():
    for page in PAGES:
        try:
            get_template(page)
        except TemplateDoesNotExist:
            continue
