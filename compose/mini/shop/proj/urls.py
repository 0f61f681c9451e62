from django.apps import apps
from django.conf import settings
from django.urls import include, path, re_path
from django.views.generic import RedirectView
from django.views.static import serve
from oscar.core.loading import get_class

import probe
import views


def to(target):
    return RedirectView.as_view(url=target, query_string=True)


urlpatterns = [
    path("", views.home, name="shop-home"),
    path("healthz", probe.healthz),
    # The addresses that WebArena's and BrowserGym's log-in code opens.
    path("customer/account/login/", views.SignInView.as_view(), name="sign-in"),
    path("customer/account/create/", get_class("customer.views", "AccountRegistrationView").as_view(), name="create-account"),
    path("customer/account/logout/", to("/accounts/logout/")),
    path("customer/account/", to("/accounts/")),
    path("wishlist/", views.WishListView.as_view()),
    re_path(r"^admin(?:/(?:dashboard/?)?)?$", to("/dashboard/")),
    path("api/", include("oscarapi.urls")),
    re_path(r"^media/(?P<path>.*)$", serve, {"document_root": settings.MEDIA_ROOT}),
    path("", include(apps.get_app_config("oscar").urls[0])),
]
