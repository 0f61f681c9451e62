from django.contrib import admin
from django.urls import include, path

import probe
import views

urlpatterns = [
    path("healthz", probe.healthz),
    path("", views.index),
    path("get_tasks/", views.get_tasks),
    path("admin/", admin.site.urls),
    path("api/", include("turkle.api.urls")),
    path("", include("django.contrib.auth.urls")),
    path("", include("turkle.urls")),
]
