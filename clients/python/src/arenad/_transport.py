"""HTTP over the daemon's Unix socket or TCP, by the standard library."""

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
    """One daemon. A connection per request: no state, so that threads may share it."""

    def __init__(self, address: str | None, token: str | None, timeout: float) -> None:
        self._address = address or os.environ.get("ARENAD_HOST") or f"unix://{default_socket()}"
        self._token = token or os.environ.get("ARENAD_TOKEN")
        self._timeout = timeout
        scheme = urlsplit(self._address).scheme
        if scheme not in ("http", "unix"):
            raise ValueError(f"`{self._address}` is neither unix:///path nor http://host:port")

    def request(self, method: str, path: str, body: object = None) -> Any:
        """Sends JSON and returns JSON; `None` where the answer has no body."""
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
            hint = "`arenad up` starts a daemon"
            raise Unreachable(f"no daemon answers at {self._address}: {error}", code="unreachable", hint=hint) from error
        finally:
            connection.close()
        if answer.status >= 400:
            raise _refusal(answer.status, text)
        return json.loads(text) if text else None

    def _connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self._address)
        if parts.scheme == "unix":
            return _UnixConnection(parts.path, self._timeout)
        return http.client.HTTPConnection(parts.hostname or "localhost", parts.port or 80, timeout=self._timeout)


def default_socket() -> Path:
    """Where the command line looks for the daemon of this machine."""
    given = os.environ.get("ARENAD_STATE_DIR")
    if given:
        return Path(given) / "arenad.sock"
    if os.geteuid() == 0:
        return Path("/var/lib/arenad/arenad.sock")
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local/state")
    return Path(home) / "arenad" / "arenad.sock"


def _refusal(status: int, text: bytes) -> ArenadError:
    try:
        problem = json.loads(text)
        return ArenadError(problem["detail"], code=problem["code"], hint=problem.get("hint"), status=status)
    except (ValueError, KeyError, TypeError):
        shown = text[:500].decode("utf-8", "replace")
        return ArenadError(f"the daemon answered {status}: {shown}", code="unknown", status=status)
