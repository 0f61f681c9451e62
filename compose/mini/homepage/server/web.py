"""The HTTP server and its routes."""

import json
import re
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from server import notes, pages, probe

STATIC = Path("/srv/homepage/static")
TYPES = {".css": "text/css; charset=utf-8", ".png": "image/png"}
LARGEST_FORM = 1 << 20


class Server(ThreadingHTTPServer):
    # An idle connection of the gateway must not delay the shutdown.
    daemon_threads, block_on_close = True, False
    request_queue_size = 128


class NotFound(Exception):
    """There is no page at this address."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # The gateway keeps its connections open; closing them here would race with its next request.
    timeout = 75

    def do_GET(self):
        self.answer(self.get)

    do_HEAD = do_GET

    def do_POST(self):
        self.answer(self.post)

    def answer(self, method):
        address = urlsplit(self.path)
        # The body is always read: the rest of a form would be taken for the connection's next request.
        form = self.form()
        if form is None:
            return
        try:
            method(unquote(address.path), {key: values[-1] for key, values in parse_qs(address.query).items()}, form)
        except NotFound:
            self.send(404, pages.not_found())
        except Exception:  # noqa: BLE001 - one bad request must not end the connection without an answer
            traceback.print_exc()
            self.send(500, pages.failed())

    def get(self, path, query, _):
        if path in ("/", "/index.html"):
            self.send(200, pages.home(self.headers.get("Host", "")))
        elif path == "/password.html":
            self.send(200, pages.passwords())
        elif path == "/calculator.html":
            self.send(200, pages.calculator(query.get("expression", "")))
        elif path == "/scratchpad.html":
            self.send(200, pages.scratchpad(query.get("note", "")))
        elif path == "/api/notes":
            self.send_json(200, notes.all())
        elif path == "/manuals/":
            self.send(200, pages.manuals(query.get("q", "")))
        elif found := re.fullmatch(r"/manuals/([a-z]+)\.html", path):
            self.send(200, pages.manual(found[1]) or self.missing())
        elif path == "/static/input_images/":
            self.send(200, pages.pictures(sorted(file.name for file in (STATIC / "input_images").iterdir())))
        elif path.startswith("/static/"):
            self.send_file(path.removeprefix("/static/"))
        elif path == "/healthz":
            self.send_json(*probe.look())
        else:
            self.missing()

    def post(self, path, _, form):
        if path != "/scratchpad.html":
            self.missing()
        note, title, text = form.get("note", ""), form.get("title", "").strip(), form.get("text", "")
        if form.get("action") == "delete":
            notes.delete(note)
        elif title or text.strip():
            # Browsers send line ends as CR LF.
            notes.save(note, title or "Untitled", text.replace("\r\n", "\n"))
        self.send_response(303)
        self.send_header("Location", "/scratchpad.html")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def missing(self):
        raise NotFound

    def form(self):
        """Returns the fields of the request's body, or nothing if it was refused."""
        try:
            length = int(self.headers.get("Content-Length", "0"))
        except ValueError:
            length = -1
        if not 0 <= length <= LARGEST_FORM or "Transfer-Encoding" in self.headers:
            self.close_connection = True
            self.send(413, pages.failed())
            return None
        body = self.rfile.read(length).decode("utf-8", "replace")
        return {key: values[-1] for key, values in parse_qs(body).items()}

    def send_file(self, name):
        file = (STATIC / name).resolve()
        if not file.is_relative_to(STATIC) or not file.is_file() or file.suffix not in TYPES:
            self.missing()
        self.send(200, file.read_bytes(), TYPES[file.suffix], "max-age=86400")

    def send_json(self, status, value):
        self.send(status, json.dumps(value) + "\n", "application/json")

    def send(self, status, body, kind="text/html; charset=utf-8", caching="no-store"):
        body = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", caching)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self):
        return "homepage"


def serve(address):
    return Server(address, Handler)
