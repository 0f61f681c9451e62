"""GitLab's addresses, so that links and tasks written for GitLab find their page here."""

import re

import flask
import pagure.lib.query
import pagure.ui.app
import pagure.utils

addresses = flask.Blueprint("addresses", __name__)

PAGES = {"/users/sign_in": "/login/", "/users/sign_out": "/logout/", "/explore": "/browse/projects/", "/explore/projects": "/browse/projects/",
         "/explore/groups": "/groups/", "/projects/new": "/new/", "/groups/new": "/group/add", "/dashboard": "/", "/dashboard/issues": "/user/{me}/issues",
         "/dashboard/merge_requests": "/user/{me}/requests", "/-/profile/personal_access_tokens": "/settings#nav-api-tab"}
IN_PROJECT = [(re.compile(pattern), target) for pattern, target in [
    (r"issues/new", "new_issue"), (r"issues/(\d+)", r"issue/\1"), (r"issues", "issues"),
    (r"merge_requests/(\d+)(/.*)?", r"pull-request/\1"), (r"merge_requests(/new)?", "pull-requests"),
    (r"tree/([^/]+)", r"tree/\1"), (r"(tree|blob)/([^/]+)/(.+)", r"blob/\2/f/\3"), (r"(raw|edit|blame|history)/([^/]+)/(.+)", r"\1/\2/f/\3"),
    (r"commits/([^/]+)(/.*)?", r"commits/\1"), (r"commit/(\w+)", r"c/\1"), (r"compare/(.+?)\.\.\.?(.+)", r"diff/\1..\2"),
    (r"branches(/.*)?", "branches"), (r"(tags|releases)(/.*)?", "releases"), (r"milestones(/.*)?", "roadmap"), (r"forks(/new)?", "forks"),
    (r"starrers", "stargazers/"), (r"(graphs|network)(/.*)?", "stats"), (r"project_members", "settings#usersgroups-tab"), (r"labels", "settings#projecttags-tab")]]


def _to_page():
    me = flask.g.fas_user.username if pagure.utils.authenticated() else None
    target = PAGES[flask.request.path.rstrip("/")]
    if "{me}" in target and not me:
        return flask.redirect("/login/?next=" + flask.request.path)
    return flask.redirect(target.format(me=me))


for page in PAGES:
    addresses.add_url_rule(page, view_func=_to_page, strict_slashes=False)
# This page is served without a redirect, because WebArena takes a redirect for an expired log-in.
addresses.add_url_rule("/-/profile", endpoint="profile", view_func=pagure.ui.app.user_settings)


@addresses.route("/<namespace>/<project>/-/<path:rest>")
def to_project(namespace, project, rest):
    for pattern, target in IN_PROJECT:
        if found := pattern.fullmatch(rest.rstrip("/")):
            return flask.redirect(f"/{namespace}/{project}/{found.expand(target)}")
    flask.abort(404, description="There is no such page here")


@addresses.before_app_request
def to_owner():
    """Redirects a single name to the person or group: every project has an owner in its address."""
    name = (flask.request.view_args or {}).get("repo")
    if flask.request.endpoint == "ui_ns.view_repo" and len(flask.request.view_args) == 1:
        if pagure.lib.query.search_user(flask.g.session, username=name):
            return flask.redirect(f"/user/{name}")
        if pagure.lib.query.search_groups(flask.g.session, group_name=name):
            return flask.redirect(f"/group/{name}")
    return None
