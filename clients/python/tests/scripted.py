"""A daemon that answers as a test has scripted it: requests in their order, and holds as streams of states."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATIENCE = 20.0
"""Seconds after which a test fails that waits for a request."""


def ending(state: str = "void", code: str = "container_died") -> dict[str, Any]:
    return {"state": state, "code": code, "reason": f"{state}, because of {code}", "slot": None}


def episode(id: str = "ep-1", state: str = "active", **fields: Any) -> dict[str, Any]:
    site = {"site": "shop", "slot": 2, "instance": "mini/shop/2", "generation": 7, "snapshot": None, "url": None}
    return {
        "id": id,
        "environment": "mini",
        "state": state,
        "owner": "default",
        "labels": {},
        "sites": [{**site, "proxy_url": "http://shop.arena.test" if state == "active" else None}],
        "ttl_seconds": 600.0,
        "left_seconds": 600.0,
        "is_held": True,
        "asked_at": "2026-01-01T00:00:00Z",
        "granted_at": None,
        "ended_at": None,
        "ending": None,
        **fields,
    }


def started(id: str = "ep-1", state: str = "queued") -> dict[str, Any]:
    proxy = {"server": "http://127.0.0.1:7500", "username": id, "password": "c0ffee"}
    return {"episode": episode(id, state), "token": "c0ffee", "proxy": proxy, "is_known": False}


class Reply:
    """A status with JSON; or, without a status, the end of the connection before any answer."""

    def __init__(self, status: int | None, body: Any = None, **headers: str) -> None:
        self.status, self.body, self.headers = status, body, headers

    @classmethod
    def problem(cls, status: int, code: str, told: dict[str, Any] | None = None, **headers: str) -> Reply:
        return cls(status, {"detail": f"refused: {code}", "code": code, "hint": None, "ending": told}, **headers)


class Line:
    """The connection of a client that holds an episode."""

    def __init__(self) -> None:
        self._sent: queue.Queue[Any] = queue.Queue()
        self.closed = threading.Event()

    def tell(self, state: dict[str, Any]) -> None:
        """Sends a state."""
        self._sent.put(state)

    def cut(self) -> None:
        """Breaks the connection."""
        self._sent.put(None)

    def serve(self, write: Callable[[bytes], None]) -> None:
        try:
            while True:
                try:
                    state = self._sent.get(timeout=0.05)
                except queue.Empty:
                    write(b": \n\n")
                    continue
                if state is None:
                    return
                write(f"event: episode\ndata: {json.dumps(state)}\n\n".encode())
                if state["ending"] is not None:
                    return
        except OSError:
            return
        finally:
            self.closed.set()


class ScriptedDaemon:
    """Answers requests from scripts by method and path. An unscripted DELETE is answered with 204."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, Any, dict[str, str]]] = []
        self._scripts: dict[tuple[str, str], list[Reply]] = {}
        self._lines: dict[str, queue.Queue[Line]] = {}
        self._lock = threading.Lock()
        daemon = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                daemon._answer(self)

            do_GET = do_POST = do_DELETE = answer

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> ScriptedDaemon:
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def script(self, method: str, path: str, *replies: Reply) -> None:
        """Adds the answers to the next requests; the last one is repeated."""
        with self._lock:
            self._scripts.setdefault((method, path), []).extend(replies)

    def stream(self, path: str, text: str) -> None:
        """Answers with server-sent events, after which the connection breaks."""
        self.script("GET", path, Reply(200, text.encode()))

    def line(self, id: str = "ep-1") -> Line:
        """Returns the next connection that holds the episode."""
        return self._holds(id).get(timeout=PATIENCE)

    def asked(self, method: str, path: str) -> list[tuple[Any, dict[str, str]]]:
        """Returns the bodies and headers of the requests so far."""
        with self._lock:
            return [(body, headers) for verb, address, body, headers in self.requests if (verb, address) == (method, path)]

    def _holds(self, id: str) -> queue.Queue[Line]:
        with self._lock:
            return self._lines.setdefault(id, queue.Queue())

    def _serve_line(self, handler: BaseHTTPRequestHandler, id: str, first: bytes) -> None:
        """Answers with a stream, whose connection holds the episode."""
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.close_connection = True

        def write(data: bytes) -> None:
            handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            handler.wfile.flush()

        if first:
            write(first)
        line = Line()
        self._holds(id).put(line)
        line.serve(write)

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        method, path = handler.command, handler.path
        size = int(handler.headers.get("Content-Length") or 0)
        body = json.loads(handler.rfile.read(size)) if size else None
        with self._lock:
            self.requests.append((method, path, body, {name.lower(): value for name, value in handler.headers.items()}))
            script = self._scripts.get((method, path), [])
            reply = script.pop(0) if len(script) > 1 else script[0] if script else None
        if path.endswith("/hold") and reply is None:
            self._serve_line(handler, path.split("/")[3], b"")
            return
        is_held = isinstance(body, dict) and body.get("hold")
        if is_held and reply is not None and isinstance(reply.body, dict) and "episode" in reply.body:
            first = f"event: started\ndata: {json.dumps(reply.body)}\n\n".encode()
            self._serve_line(handler, reply.body["episode"]["id"], first)
            return
        if reply is None:
            reply = Reply(204) if method == "DELETE" else Reply.problem(404, "not_found")
        if reply.status is None:
            handler.close_connection = True
            return
        is_raw = isinstance(reply.body, bytes)
        text = reply.body if is_raw else b"" if reply.body is None else json.dumps(reply.body).encode()
        handler.send_response(reply.status)
        for name, value in reply.headers.items():
            handler.send_header(name.replace("_", "-"), value)
        if reply.status != 204:
            handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)
