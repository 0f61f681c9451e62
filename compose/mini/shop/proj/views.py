from django.contrib.auth.mixins import LoginRequiredMixin
from django.db.models import Q
from django.shortcuts import render
from oscar.core.loading import get_class, get_model

AccountAuthView = get_class("customer.views", "AccountAuthView")
WishListListView = get_class("customer.wishlists.views", "WishListListView")
Product, Category = get_model("catalogue", "Product"), get_model("catalogue", "Category")


def home(request):
    """Shows the departments, the best sellers and the newest products."""
    products = Product.objects.browsable().base_queryset()
    departments = []
    for category in Category.objects.browsable().filter(depth__lte=2).order_by("path"):
        if category.depth == 1:
            departments.append((category, []))
        else:
            # The address is composed from the parents', each of which would otherwise be queried.
            category._cached_parent_obj, below = departments[-1]
            below.append(category)
    # The primary key breaks ties, so that two instances always show the same page.
    best = products.filter(Q(stats__num_purchases__gt=0)).order_by("-stats__num_purchases", "pk")[:8]
    newest = products.order_by("-date_created", "pk")[:4]
    return render(request, "home.html", {"departments": departments, "best": best, "newest": newest})


class SignInView(AccountAuthView):
    """A page for signing in only. Oscar's own page also registers, so that each label exists twice."""

    template_name = "sign_in.html"


class WishListView(LoginRequiredMixin, WishListListView):
    """Shows the wish lists at the address that benchmarks use to check whether a login is still valid."""
