"""HTTP over the daemon's Unix socket or over TCP, with the standard library."""

from __future__ import annotations

import http.client
import json
import os
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ._errors import ArenadError, Unreachable


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

    def request(self, method: str, path: str, body: object = None) -> Any:
        """Sends JSON and returns JSON, or `None` if the answer has no body."""
        headers = {"Accept": "application/json"}
        payload = None
        if body is not None:
            payload = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        connection = self._connection()
        try:
            connection.request(method, path, payload, headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            detail, hint = _why(self._address, error)
            raise Unreachable(detail, code="unreachable", hint=hint) from error
        finally:
            connection.close()
        if answer.status >= 400:
            raise _refusal(self._address, answer.status, text)
        try:
            return json.loads(text) if text else None
        except ValueError as error:
            raise _foreign(self._address, answer.status, text) from error

    def _connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self._address)
        if parts.scheme == "unix":
            return _UnixConnection(parts.path, self._timeout)
        return http.client.HTTPConnection(parts.hostname or "localhost", parts.port or 80, timeout=self._timeout)


def default_socket() -> Path:
    """Returns the path at which the command line expects the daemon's socket."""
    given = os.environ.get("ARENAD_STATE_DIR")
    if given:
        return Path(given) / "arenad.sock"
    if os.geteuid() == 0:
        return Path("/var/lib/arenad/arenad.sock")
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local/state")
    return Path(home) / "arenad" / "arenad.sock"


def _refusal(address: str, status: int, text: bytes) -> ArenadError:
    try:
        problem = json.loads(text)
        return ArenadError(problem["detail"], code=problem["code"], hint=problem.get("hint"), status=status)
    except (ValueError, KeyError, TypeError):
        return _foreign(address, status, text)


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
