"""/healthz: checks everything that a visitor may need and changes nothing."""

import os
import time

import flask
import pygit2
import sqlalchemy
from pagure.config import config
from pagure.lib import model, query
from pagure.lib.tasks import conn

probe = flask.Blueprint("probe", __name__)


def projects(session):
    return session.query(model.Project).filter_by(is_fork=False).count()


def issues(session):
    return session.query(model.Issue).count()


def search(session):
    """Searches for a term that must have results."""
    return query.search_projects(session, pattern="*gauge*", count=True)


def commit(session):
    """Reads the newest commit of the first project from its repository."""
    project = session.query(model.Project).order_by(model.Project.id).first()
    return str(pygit2.Repository(project.repopath("main")).head.target)


def database_write(session):
    session.execute(sqlalchemy.text("CREATE TEMPORARY TABLE probe (one int) ON COMMIT DROP"))
    session.execute(sqlalchemy.text("INSERT INTO probe VALUES (1)"))
    session.rollback()
    return True


def disk_write(session):
    """Writes one MiB to the disk of /data, and to the container's own disk if that is a different one."""
    disks = {os.stat(folder).st_dev: folder for folder in ("/tmp", config["ATTACHMENTS_FOLDER"])}
    for folder in disks.values():
        path = f"{folder}/.probe-{os.getpid()}-{time.monotonic_ns()}"
        try:
            with open(path, "wb") as file:
                file.write(bytes(1 << 20))
                os.fsync(file.fileno())
        finally:
            if os.path.exists(path):
                os.unlink(path)
    return True


def worker(session):
    """Checks that the worker answers. Another of its processes answers while it runs a task."""
    # The probe opens its own connection: a rewind restarts the queue, and a pooled connection is found broken only on
    # use.
    with conn.connection_for_write() as connection:
        # A ping sent before the worker subscribes is lost, and waiting for its answer takes at least a second.
        queue, deadline = connection.default_channel.client, time.monotonic() + 2
        while not queue.pubsub_numpat():
            if time.monotonic() > deadline:
                raise RuntimeError("the worker does not listen")
            time.sleep(0.005)
        if not conn.control.broadcast("ping", reply=True, limit=1, timeout=2, connection=connection):
            raise RuntimeError("the worker does not answer")
    return True


STEPS = [projects, issues, search, commit, database_write, disk_write, worker]


@probe.route("/healthz")
def healthz():
    begun, seen = time.monotonic(), {}
    for step in STEPS:
        try:
            seen[step.__name__] = step(flask.g.session)
        except Exception as error:
            flask.g.session.rollback()
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            return {"ok": False, **seen, "failed": step.__name__, "reason": reason}, 503
    return {"ok": True, **seen, "milliseconds": round((time.monotonic() - begun) * 1000, 1)}
