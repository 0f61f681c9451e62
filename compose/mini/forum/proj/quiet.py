"""Makes page views write nothing and contact no other host: an instance that was only read still equals its baseline."""

from celery import Celery
from django.apps import AppConfig


class QuietConfig(AppConfig):
    name = "quiet"

    def ready(self):
        celery = Celery("forum")
        celery.config_from_object("django.conf:settings", namespace="CELERY")
        # This sets the default for every thread, not only for the one that imports this.
        celery.set_default()

        from misago import __version__
        from misago.admin import middleware
        from misago.graphql.admin import versioncheck

        # Each page of the administration would otherwise renew the time in the session; without that, the session is
        # valid for ten years.
        middleware.update_admin_authorization = lambda request: None
        # The dashboard would otherwise ask pypi.org for a newer version.
        versioncheck.get_latest_version_from_api = lambda: __version__


def one_address(get_response):
    """Gives all visitors the same address: they all come through the gateway.

    A member's session contains the address of the last visit, and Misago rewrites it whenever the address changes.
    """

    def middleware(request):
        request.user_ip = "127.0.0.1"
        return get_response(request)

    return middleware
