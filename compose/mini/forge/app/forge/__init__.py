"""Adapts Pagure to this environment. Import this before any module of Pagure."""

import flask
import pagure.config
import sqlalchemy
from sqlalchemy.orm import sessionmaker


class SiteConfig(flask.Config):
    """Pagure's settings; the addresses follow the host name in the visitor's request."""

    _PUBLIC = ("APP_URL", "GIT_URL_GIT", "GIT_URL_SSH")

    def __getitem__(self, key):
        if key in self._PUBLIC and flask.has_request_context():
            return flask.request.host_url
        return super().__getitem__(key)

    def get(self, key, default=None):
        return self[key] if key in self else default


# Pagure's modules import the object by name, so it is replaced before they are imported.
_plain = pagure.config.config
pagure.config.config = SiteConfig(_plain.root_path, _plain)

import pagure.lib.git  # noqa: E402
import pagure.lib.model_base  # noqa: E402
import pagure.lib.query  # noqa: E402

import forge.repairs  # noqa: E402, F401

# Pagure also copies every change of an issue or request into git repositories that can be cloned over SSH. There is no
# SSH here, and each copy would occupy the worker for seconds.
pagure.lib.query.get_repotypes = lambda: ("main",)
pagure.lib.git.update_git = pagure.lib.git.clean_git = lambda *_, **__: None

# The engine that Pagure would create, except that each pooled connection is tested before use: a rewind restarts the
# database under a running forge.
pagure.lib.model_base.SESSIONMAKER = sessionmaker(bind=sqlalchemy.create_engine(
    pagure.config.config["DB_URL"], client_encoding="utf8", pool_pre_ping=True))
