"""HTTP over the daemon's Unix socket or over TCP, with the standard library."""

from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ._errors import ArenadError, Unreachable, ended

SILENCE = 30.0
"""Seconds without a byte after which a stream counts as broken. The daemon sends a comment at least every 15."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("arenad", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Transport:
    """Sends requests to one daemon. Each request opens a connection of its own, so threads may share the object."""

    def __init__(self, address: str | None, token: str | None, timeout: float) -> None:
        self._address = address or os.environ.get("ARENAD_HOST") or f"unix://{default_socket()}"
        self._token = token or os.environ.get("ARENAD_TOKEN")
        self._timeout = timeout
        scheme = urlsplit(self._address).scheme
        if scheme not in ("http", "unix"):
            raise ValueError(f"`{self._address}` is neither unix:///path nor http://host:port")

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Sends JSON and returns JSON, or `None` if the answer has no body."""
        status, text = self._answered(method, path, body, headers, timeout)
        try:
            return json.loads(text) if text else None
        except ValueError as error:
            raise _foreign(self._address, status, text) from error

    def text(self, method: str, path: str) -> str:
        """Sends a request and returns the answer as text."""
        _, text = self._answered(method, path, None, None, None)
        return text.decode("utf-8", "replace")

    def _answered(
        self,
        method: str,
        path: str,
        body: object,
        headers: Mapping[str, str] | None,
        timeout: float | None,
    ) -> tuple[int, bytes]:
        """Sends JSON and returns the status and the body of the answer."""
        connection = self._connection(timeout or self._timeout)
        try:
            answer = self._ask(connection, method, path, body, headers or {})
            try:
                text = answer.read()
            except (OSError, http.client.HTTPException) as error:
                raise self._unreachable(error) from error
        finally:
            connection.close()
        if answer.status >= 400:
            raise _refusal(self._address, answer, text)
        return answer.status, text

    def stream(
        self, path: str, method: str = "GET", body: object = None, headers: Mapping[str, str] | None = None
    ) -> ServerEvents:
        """Opens a stream of server-sent events."""
        connection = self._connection(SILENCE)
        try:
            try:
                connection.connect()
            except OSError as error:
                raise self._unreachable(error) from error
            # Kept here, because the connection gives it away if the daemon announces that it closes it.
            line = connection.sock
            answer = self._ask(connection, method, path, body, {"Accept": "text/event-stream", **(headers or {})})
            if answer.status >= 400:
                raise _refusal(self._address, answer, answer.read())
        except BaseException:
            connection.close()
            raise
        return ServerEvents(connection, line, answer)

    def _ask(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: object, headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        sent = {"Accept": "application/json", **headers}
        payload = None
        if body is not None:
            payload = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        try:
            connection.request(method, path, payload, sent)
            return connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> Unreachable:
        detail, hint = _why(self._address, error)
        return Unreachable(detail, code="unreachable", hint=hint)

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        parts = urlsplit(self._address)
        if parts.scheme == "unix":
            return _UnixConnection(parts.path, timeout)
        return http.client.HTTPConnection(parts.hostname or "localhost", parts.port or 80, timeout=timeout)


class ServerEvents:
    """A stream of server-sent events, as pairs of name and data. It ends when the daemon ends it or the connection breaks."""

    def __init__(
        self, connection: http.client.HTTPConnection, line: socket.socket, answer: http.client.HTTPResponse
    ) -> None:
        self._connection = connection
        self._socket = line
        self._answer = answer
        self._events = self._read()

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return self

    def __next__(self) -> tuple[str, Any]:
        return next(self._events)

    def _read(self) -> Iterator[tuple[str, Any]]:
        name, data = "message", ""
        try:
            for line in self._answer:
                text = line.decode("utf-8", "replace").rstrip("\r\n")
                field, _, value = text.partition(":")
                value = value.removeprefix(" ")
                if field == "event":
                    name = value
                elif field == "data":
                    data += value
                elif not text and data:
                    yield name, json.loads(data)
                    name, data = "message", ""
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            # The connection broke, or `close` in another thread took it away in the middle of a read.
            return
        finally:
            self.close()

    def close(self) -> None:
        """Closes the connection, and wakes a thread that reads from it."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._connection.close()
        self._socket.close()

    def forget(self) -> None:
        """Closes this process's copy of the connection, which stays open in the process that this one was forked from."""
        try:
            os.close(self._socket.detach())
        except OSError:
            pass


def default_socket() -> Path:
    """Returns the path at which the command line expects the daemon's socket."""
    given = os.environ.get("ARENAD_STATE_DIR")
    if given:
        return Path(given) / "arenad.sock"
    if os.geteuid() == 0:
        return Path("/var/lib/arenad/arenad.sock")
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local/state")
    return Path(home) / "arenad" / "arenad.sock"


def _refusal(address: str, answer: http.client.HTTPResponse, text: bytes) -> ArenadError:
    try:
        problem = json.loads(text)
        detail, hint = problem["detail"], problem.get("hint")
        if problem.get("ending"):
            return ended(problem["ending"], detail, hint=hint, status=answer.status)
        retry_after = _seconds(answer.getheader("Retry-After"))
        return ArenadError(detail, code=problem["code"], hint=hint, status=answer.status, retry_after=retry_after)
    except (ValueError, KeyError, TypeError):
        return _foreign(address, answer.status, text)


def _seconds(header: str | None) -> float | None:
    return float(header) if header and header.isascii() and header.isdigit() else None


def _foreign(address: str, status: int, text: bytes) -> Unreachable:
    shown = " ".join(text[:200].decode("utf-8", "replace").split())
    detail = f"the server at {address} is not arenad: it answered {status}: {shown}"
    return Unreachable(detail, code="not_arenad", hint="give the daemon's address, or set ARENAD_HOST", status=status)


def _why(address: str, error: Exception) -> tuple[str, str]:
    """Returns the reason for a missing answer, and a hint. A daemon that denies access to this user is distinguished from
    one that does not run."""
    match error:
        case PermissionError():
            return f"this user may not open {address}", "run this as the daemon's user, or use a state directory of your own"
        case TimeoutError():
            return f"no answer from {address} in time", "check the daemon's log, or give Arena a longer timeout"
        case FileNotFoundError() | ConnectionRefusedError():
            return f"no daemon answers at {address}: {error}", "`arenad up` starts a daemon"
        case socket.gaierror():
            return f"the host of {address} is unknown: {error}", "correct the address, or ARENAD_HOST"
        case OSError():
            return f"the connection to {address} ended before the answer: {error}", "`arenad status` shows whether it runs"
        case _:
            return f"the server at {address} is not arenad: {error!r}", "give the daemon's address, or set ARENAD_HOST"
