"""Opens pages and sends the requests that the pages send, so that later views write nothing."""

import gc
import re

import flask
import pagure.lib.git
import pagure.lib.tasks
from pagure.config import config
from pagure.lib import model, model_base

from forge.wsgi import application


def crawl():
    pagure.lib.tasks.conn.conf.task_always_eager = True
    session, visitor = model_base.create_session(config["DB_URL"]), application.test_client()
    pages = ["/", "/users/", "/groups/", "/explore", "/byteblaze", "/search?type=projects&term=tide"]
    for project in session.query(model.Project).order_by(model.Project.id):
        path = "/" + project.url_path
        pages += [path] if project.is_fork else [path, f"{path}/commits/main", f"{path}/releases", f"{path}/issues", f"{path}/issue/{project.issues[0].id}"]
    for request in session.query(model.PullRequest).order_by(model.PullRequest.uid):
        pages.append(f"/{request.project.url_path}/pull-request/{request.id}")
        if request.status == "Open":
            with application.app_context():
                flask.g.session = session
                pagure.lib.git.merge_pull_request(session, request, username=None, domerge=False)
    session.flush()
    # A view must not count as an update.
    open_ones = session.query(model.PullRequest).filter_by(status="Open")
    open_ones.update({model.PullRequest.last_updated: model.PullRequest.date_created})
    session.commit()
    session.remove()
    # Pagure runs the garbage collector after each request; existing objects are excluded from it.
    gc.freeze()
    for page in pages:
        answer = visitor.get(page, follow_redirects=True)
        assert answer.status_code == 200, f"{page} answered {answer.status_code}"
        outside = re.findall(r'(?:src|<link[^>]*href)="(?:https?:)?//(?!localhost)[^"]*', answer.text)
        assert not outside, f"{page} loads {outside[0]}"
