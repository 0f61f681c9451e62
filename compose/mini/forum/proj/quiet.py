"""Looking at a page writes nothing and asks nobody: an instance that was only read still equals its baseline."""

from celery import Celery
from django.apps import AppConfig


class QuietConfig(AppConfig):
    name = "quiet"

    def ready(self):
        celery = Celery("forum")
        celery.config_from_object("django.conf:settings", namespace="CELERY")
        # For every thread, not only the one that imports this.
        celery.set_default()

        from misago import __version__
        from misago.admin import middleware
        from misago.graphql.admin import versioncheck

        # Each page of the administration would renew the time in the session; as it is, it holds for ten years.
        middleware.update_admin_authorization = lambda request: None
        # The dashboard would ask pypi.org whether there is a newer one.
        versioncheck.get_latest_version_from_api = lambda: __version__


def one_address(get_response):
    """Gives all visitors the same address: they all come through the gateway.

    A member's session remembers the address it was last seen from, and Misago writes it anew whenever that changes.
    """

    def middleware(request):
        request.user_ip = "127.0.0.1"
        return get_response(request)

    return middleware
