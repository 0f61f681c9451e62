"""The client, synchronous and asynchronous."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar
from urllib.parse import quote

from ._errors import ArenadError, OperationFailed
from ._transport import Transport
from .types import (
    Begun,
    Checked,
    Evaluation,
    Event,
    Located,
    Operation,
    Session,
    Site,
    Snapshot,
    Status,
    StorageState,
    Verification,
)

HOLD = 30
"""Seconds that one request waits for an operation's end."""

P = ParamSpec("P")
T = TypeVar("T")


class Arena:
    """The sites of one environment of a daemon.

    `address` is `unix:///path` or `http://host:port`; without it, the daemon is found as the command line finds it.
    `environment` may be left out where one alone is up. `timeout` is for one request, in seconds. Threads may share an arena.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        token: str | None = None,
        environment: str | None = None,
        timeout: float = 120.0,
    ) -> None:
        self._transport = Transport(address, token, timeout)
        self._environment = environment

    def __enter__(self) -> Arena:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None

    def status(self) -> Status:
        """What is up, and how it is."""
        status: Status = self._transport.request("GET", "/v1/status")
        return status

    def sites(self) -> list[Site]:
        """The sites of the environment that are up."""
        environments = self.status()["environments"]
        if self._environment is not None:
            environments = [found for found in environments if found["name"] == self._environment]
        if len(environments) != 1:
            names = ", ".join(found["name"] for found in environments) or "none"
            hint = "name it: Arena(environment=…)" if environments else "`arenad up` brings one up"
            raise ArenadError(f"one environment is meant, and there is {names}", code="which_environment", hint=hint)
        return environments[0]["sites"]

    def urls(self) -> dict[str, str]:
        """Where browsers find each site."""
        return {site["name"]: site["url"] for site in self.sites()}

    def reset(self, *sites: str, to: str | None = None, if_dirty: bool = False, timeout: float = 600.0) -> list[Operation]:
        """Brings sites back to their baselines, or one of them to a snapshot, and returns when they serve again.

        All sites, if none is named. With `if_dirty`, what is proven to be as its snapshot is left as it is.
        Raises `OperationFailed`, and `TimeoutError` after `timeout` seconds.
        """
        body = {"sites": list(sites), "if_dirty": if_dirty, "to": to}
        accepted = self._transport.request("POST", f"/v1/environments/{self._name()}/resets", body)
        return self._ended(accepted["operations"], timeout)

    def verify(self, site: str) -> Verification:
        """Compares a site with its snapshot."""
        verification: Verification = self._transport.request("POST", f"{self._site(site)}/verify")
        return verification

    def locate(self, site: str, locator: str, *, page: str | None = None, cdp: str | None = None, **arguments: object) -> Located:
        """Reads a value, such as `sql(shop): SELECT COUNT(*) FROM order_order WHERE user_id = {user}` with `user=3`.

        `page` is the path that a `js:` locator looks at, `cdp` the address of the agent's browser for `js: … @ live`.
        Arguments are bound, never pasted.
        """
        texts = {name: str(value) for name, value in arguments.items()}
        body = {"locator": locator, "arguments": texts, "page": page, "cdp": cdp}
        located: Located = self._transport.request("POST", f"{self._site(site)}/locate", body)
        return located

    def value(self, site: str, locator: str, *, page: str | None = None, cdp: str | None = None, **arguments: object) -> Any:
        """The value alone."""
        return self.locate(site, locator, page=page, cdp=cdp, **arguments)["value"]

    def har(self, *sites: str) -> dict[str, Any]:
        """What the gateway has recorded of sites, all if none is named, since their latest reset: a HAR, without secrets.

        `har["log"]["_arenad"]["sites"]` says of each what is recorded, and what is missing.
        """
        path = f"/v1/environments/{quote(self._name(), safe='')}/har?sites={quote(','.join(sites))}"
        har: dict[str, Any] = self._transport.request("GET", path)
        return har

    def login(self, site: str, account: str) -> Session:
        """A session of an account; one that is part of the snapshot is good again after every reset."""
        session: Session = self._transport.request("POST", f"{self._site(site)}/accounts/{quote(account, safe='')}/login")
        return session

    def storage_state(self, site: str, account: str) -> StorageState:
        """The session as Playwright takes it. It has no place for headers."""
        return {"cookies": self.login(site, account)["cookies"], "origins": []}

    def begin(self, task: str, *, reset: bool = False) -> Begun:
        """Begins an episode of a native task: captures what its check will compare with.

        With `reset`, the task's sites are brought to where it starts first. Give the answer to `check`.
        """
        body = {"task": task, "reset": reset}
        begun: Begun = self._transport.request("POST", f"/v1/environments/{self._name()}/checks/begin", body)
        return begun

    def check(self, begun: Begun, *, answer: str = "", url: str | None = None, cdp: str | None = None) -> Checked:
        """Says whether the agent did what the task asks for, by its answer, where it ended, and what the sites hold now."""
        body = {"task": begun["task"], "begun": begun, "answer": answer, "url": url, "cdp": cdp}
        checked: Checked = self._transport.request("POST", f"/v1/environments/{self._name()}/checks", body)
        return checked

    def evaluate(
        self,
        benchmark: str,
        task: Any,
        *,
        answer: Any = "",
        url: str = "",
        har: Any = None,
        cdp: str | None = None,
        profiles: Iterable[str] = ("compat",),
    ) -> Evaluation:
        """Judges an episode by the rules of `webarena`, `visualwebarena` or `webarena-verified`.

        `task` is the task as the benchmark publishes it, or its number. Call it before the sites are reset.
        """
        body: dict[str, Any] = {"benchmark": benchmark, "task": task, "answer": answer, "url": url, "cdp": cdp}
        body["profiles"] = list(profiles)
        if har is not None:
            body["traffic"] = {"har": har}
        evaluation: Evaluation = self._transport.request("POST", f"/v1/environments/{self._name()}/evaluations", body)
        return evaluation

    def snapshots(self) -> list[Snapshot]:
        """The snapshots, the newest first."""
        snapshots: list[Snapshot] = self._transport.request("GET", "/v1/snapshots")["snapshots"]
        return snapshots

    def take_snapshot(self, site: str, name: str, *, timeout: float = 600.0) -> Snapshot:
        """Takes a snapshot of a site as it is."""
        accepted = self._transport.request("POST", f"{self._site(site)}/snapshots", {"name": name})
        return self._ended(accepted["operations"], timeout)[0]["snapshot"]

    def events(self, *, after: int | None = None, limit: int = 100) -> list[Event]:
        """What happened, oldest first: after a sequence number, or the newest."""
        path = f"/v1/events?limit={limit}" + ("" if after is None else f"&after={after}")
        events: list[Event] = self._transport.request("GET", path)["events"]
        return events

    def _name(self) -> str:
        if self._environment is None:
            self._environment = self.sites()[0]["environment"]
        return quote(self._environment, safe="")

    def _site(self, site: str) -> str:
        return f"/v1/environments/{self._name()}/sites/{quote(site, safe='')}"

    def _ended(self, begun: Iterable[Operation], timeout: float) -> list[Operation]:
        deadline = time.monotonic() + timeout
        ended = [self._end(operation, deadline) for operation in begun]
        for operation in ended:
            if operation["state"] != "done":
                raise OperationFailed(operation)
        return ended

    def _end(self, operation: Operation, deadline: float) -> Operation:
        while operation["state"] == "running":
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"{operation['kind']} of {operation['site']} goes on; operation {operation['id']}")
            path = f"/v1/operations/{operation['id']}?wait={min(HOLD, left):.3f}"
            operation = self._transport.request("GET", path)
        return operation


def _threaded(method: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(method, *args, **kwargs)

    return call


class AsyncArena:
    """The same, awaited; each call has a thread while it lasts."""

    def __init__(
        self,
        address: str | None = None,
        *,
        token: str | None = None,
        environment: str | None = None,
        timeout: float = 120.0,
    ) -> None:
        arena = Arena(address, token=token, environment=environment, timeout=timeout)
        self.status = _threaded(arena.status)
        self.sites = _threaded(arena.sites)
        self.urls = _threaded(arena.urls)
        self.reset = _threaded(arena.reset)
        self.verify = _threaded(arena.verify)
        self.locate = _threaded(arena.locate)
        self.value = _threaded(arena.value)
        self.har = _threaded(arena.har)
        self.login = _threaded(arena.login)
        self.storage_state = _threaded(arena.storage_state)
        self.begin = _threaded(arena.begin)
        self.check = _threaded(arena.check)
        self.evaluate = _threaded(arena.evaluate)
        self.snapshots = _threaded(arena.snapshots)
        self.take_snapshot = _threaded(arena.take_snapshot)
        self.events = _threaded(arena.events)

    async def __aenter__(self) -> AsyncArena:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None
