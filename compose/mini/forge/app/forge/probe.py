import flask

probe = flask.Blueprint("probe", __name__)


@probe.route("/healthz")
def healthz():
    return {"ok": True}
