from django.conf import settings
from django.urls import include, path, re_path
from django.views.generic import RedirectView
from django.views.i18n import JavaScriptCatalog
from django.views.static import serve

import views

urlpatterns = [
    # The addresses that WebArena's tasks and log-in code open.
    path("login", views.LogInView.as_view(), name="log-in"),
    path("login/", views.LogInView.as_view()),
    path("forums", RedirectView.as_view(pattern_name="misago:categories")),
    re_path(r"^f/(?P<name>[^/]+)/?$", views.forum),
    re_path(r"^f/(?P<name>[^/]+)/(?P<number>\d+)(?:/.*)?$", views.thread),
    re_path(r"^user/(?P<name>[^/]+)/?$", views.profile),
    re_path(r"^user/(?P<name>[^/]+)/account/?$", views.account),
    path("django-i18n.js", JavaScriptCatalog.as_view(packages=["misago"]), name="django-i18n"),
    re_path(r"^media/(?P<path>.*)$", serve, {"document_root": settings.MEDIA_ROOT}),
    path("", include("misago.urls", namespace="misago")),
]

handler403 = "misago.core.errorpages.permission_denied"
handler404 = "misago.core.errorpages.page_not_found"
