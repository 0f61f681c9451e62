"""Pagure fitted to its place. Import this before anything of Pagure."""

import datetime

import flask
import pagure.config
import sqlalchemy
from sqlalchemy.orm import sessionmaker

TEN_YEARS = datetime.timedelta(days=3650)


class SiteConfig(flask.Config):
    """Pagure's settings, with the two addresses that are the visitor's rather than ours."""

    _PUBLIC = ("APP_URL", "GIT_URL_GIT")

    def __getitem__(self, key):
        if key in self._PUBLIC and flask.has_request_context():
            return flask.request.host_url
        return super().__getitem__(key)

    def get(self, key, default=None):
        return self[key] if key in self else default


def _site_config():
    plain = pagure.config.config
    config = SiteConfig(plain.root_path)
    config.update(plain)
    return config


# Pagure's modules take the object by name when they are imported, so it has to be exchanged before.
pagure.config.config = _site_config()

import pagure.lib.git  # noqa: E402
import pagure.lib.model as model  # noqa: E402
import pagure.lib.model_base as model_base  # noqa: E402
import pagure.lib.query  # noqa: E402

# Pagure also copies every change of an issue or request into git repositories that can be cloned over SSH. There is no
# SSH here, and each copy would keep the worker busy for seconds.
pagure.lib.query.get_repotypes = lambda: ("main",)
pagure.lib.git.update_git = pagure.lib.git.clean_git = lambda *_, **__: None

# The engine that Pagure would make, except that a kept connection is tried before use:
# a rewind restarts the database below a running forge.
model_base.SESSIONMAKER = sessionmaker(bind=sqlalchemy.create_engine(
    pagure.config.config["DB_URL"], client_encoding="utf8", pool_pre_ping=True))


@sqlalchemy.event.listens_for(model.PagureUserVisit.expiry, "set", retval=True)
def _keep_expiry(visit, value, old, initiator):
    """Sessions last ten years from the log-in: Pagure would prolong them, and so write, with every page."""
    return old if isinstance(old, datetime.datetime) else datetime.datetime.utcnow() + TEN_YEARS
