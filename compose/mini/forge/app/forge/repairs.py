"""What Pagure 5.14 gets wrong with the Python and the libraries of its Debian release."""

import ast

import pagure.ui.clone

_proxy_raw_git = pagure.ui.clone.proxy_raw_git


def _with_headers_as_text(project):
    """Git over HTTP: the headers are handed on as bytes, which Werkzeug prints as b'...'."""
    response = _proxy_raw_git(project)
    for name, value in list(response.headers):
        if value.startswith("b'"):
            response.headers[name] = ast.literal_eval(value).decode()
    return response


pagure.ui.clone.proxy_raw_git = _with_headers_as_text
