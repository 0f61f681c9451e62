"""Corrects errors of Pagure 5.14 with the Python and the libraries of its Debian release, and avoids repeated work."""

import ast
import functools
import time

import pagure.lib.git
import pagure.lib.tasks
import pagure.ui.clone
import pagure.utils
import pygit2

_proxy_raw_git = pagure.ui.clone.proxy_raw_git
_update_pull_ref = pagure.lib.git.update_pull_ref


def _with_headers_as_text(project):
    """Git over HTTP: Pagure passes the headers on as bytes, which Werkzeug prints as b'...'."""
    response = _proxy_raw_git(project)
    for name, value in list(response.headers):
        if value.startswith("b'"):
            response.headers[name] = ast.literal_eval(value).decode()
    return response


def _unless_it_is_right(request, repository):
    """Skips an unnecessary push: Pagure pushes the branch of an open request to the project on every view, which creates
    new files with the same contents."""
    project = pygit2.Repository(pagure.utils.get_repo_path(request.project))
    known = project.references.get(f"refs/pull/{request.id}/head")
    branch = repository.branches.local.get(request.branch_from)
    if not (known and branch and known.target == branch.target):
        _update_pull_ref(request, repository)


def when_done(view, patience=5.0):
    """Waits up to `patience` seconds for the result of a task before the view runs. Pages poll for the result, and each
    poll that comes too early gets an error, which stays in the browser's console."""

    @functools.wraps(view)
    def wait(taskid):
        task, deadline = pagure.lib.tasks.get_result(taskid), time.monotonic() + patience
        while not task.ready() and time.monotonic() < deadline:
            time.sleep(0.05)
        return view(taskid)

    return wait


pagure.ui.clone.proxy_raw_git = _with_headers_as_text
pagure.lib.git.update_pull_ref = _unless_it_is_right
