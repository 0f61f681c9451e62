"""Addresses of GitLab, so that links and tasks written for it find their page here."""

import flask

addresses = flask.Blueprint("addresses", __name__)


@addresses.route("/users/sign_in")
def sign_in():
    return flask.redirect("/login/")
