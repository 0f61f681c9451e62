"""The synchronous and the asynchronous client."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import Any
from urllib.parse import quote

from . import _program
from ._async import AsyncEpisodeStart, iterated, threaded
from ._episode import Episode, EpisodeRequest
from ._errors import ArenadError, OperationFailed
from ._names import ambiguous, path_of
from ._observe import Observation
from ._tasks import published
from .types import (
    Begun,
    Checked,
    EpisodeStateEvent,
    Evaluation,
    Located,
    Operation,
    Pruned,
    QueuedRequest,
    Recording,
    ReportedEpisode,
    Session,
    Snapshot,
    StorageState,
    Task,
    Verification,
)

HOLD = 30
"""Seconds that one request waits for an operation's end."""


class Arena(Observation):
    """A client of a daemon and its sites.

    `address` is `unix:///path` or `http://host:port`; without it, the client finds the daemon as the command line does.
    `timeout` is the limit for one request, in seconds. Threads may share an arena.

    `environment`, here or in a call, is needed only if several environments that are up have the site or task. Without
    it such a call raises `ArenadError` with the code `which_environment`, and the error names the environments.

    >>> from arenad import Client
    >>> with Client() as client:
    ...     site = client.sites()[0]["name"]
    ...     [reset["state"] for reset in client.reset(site)]
    ['done']
    """

    def __enter__(self) -> Arena:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None

    def urls(self, *, environment: str | None = None) -> dict[str, str]:
        """Returns the URL of each site, for browsers."""
        sites = self.sites(environment=environment)
        for site in sites:
            self._one(sites, site["name"])
        return {site["name"]: site["url"] for site in sites}

    def up(
        self,
        *sites: str,
        environment: str | None = None,
        timeout: float | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> list[Operation]:
        """Brings sites up and returns when they are ready; without names, all sites of the environment (default `mini`).

        Runs the program `arenad`, which ARENAD_BIN may name, because the definition consists of files: it is found from
        the current folder or through ARENAD_ROOT. `variables` sets variables that the definition's files use. A daemon
        is started if none runs.
        """
        wanted = environment or self._environment or "mini"
        words = ["up", "--environment", wanted, *sites]
        if timeout is not None:
            words += ["--wait-timeout", f"{max(1, round(timeout * 1000))}ms"]
        operations: list[Operation] = self._run(words, variables)["operations"]
        return operations

    def down(self, *sites: str, environment: str | None = None) -> None:
        """Takes sites down: the named ones, else all of the environment, else all that are up."""
        wanted = environment or self._environment
        self._run(["down", *sites, *([] if wanted is None else ["--environment", wanted])])

    def tasks(self, *, environment: str | None = None) -> list[Task]:
        """Returns the native tasks of an environment (default `mini`), read from its files. `begin` takes their names."""
        wanted = environment or self._environment or "mini"
        tasks: list[Task] = self._run(["tasks", "ls", wanted])
        return tasks

    def reset(
        self,
        *sites: str,
        to: str | None = None,
        if_dirty: bool = False,
        timeout: float = 600.0,
        environment: str | None = None,
    ) -> list[Operation]:
        """Brings sites back to their baselines, or one site to a snapshot, and returns when they serve again.

        Without names, all sites of the environment are reset. With `if_dirty`, a site that is proven equal to its
        snapshot is not reset. Raises `OperationFailed`, and `TimeoutError` after `timeout` seconds.
        """
        begun: list[Operation] = []
        for name, chosen in self._chosen(sites, environment).items():
            body = {"sites": chosen, "if_dirty": if_dirty, "to": to}
            begun += self._transport.request("POST", f"{path_of(name)}/resets", body)["operations"]
        return self._ended(begun, timeout)

    def verify(self, site: str, *, environment: str | None = None) -> Verification:
        """Compares a site with its snapshot."""
        verification: Verification = self._transport.request("POST", f"{self._site(site, environment)}/verify")
        return verification

    def locate(
        self,
        site: str,
        locator: str,
        *,
        page: str | None = None,
        cdp: str | None = None,
        environment: str | None = None,
        **arguments: object,
    ) -> Located:
        """Reads a value, such as `sql(shop): SELECT COUNT(*) FROM order_order WHERE user_id = {user}` with `user=3`.

        `page` is the path of the page for a `js:` locator, `cdp` the address of the agent's browser for `js: … @ live`.
        Arguments are bound as parameters, never pasted into the text.
        """
        texts = {name: str(value) for name, value in arguments.items()}
        body = {"locator": locator, "arguments": texts, "page": page, "cdp": cdp}
        located: Located = self._transport.request("POST", f"{self._site(site, environment)}/locate", body)
        return located

    def value(
        self,
        site: str,
        locator: str,
        *,
        page: str | None = None,
        cdp: str | None = None,
        environment: str | None = None,
        **arguments: object,
    ) -> Any:
        """Reads a value as `locate` does and returns it without evidence."""
        return self.locate(site, locator, page=page, cdp=cdp, environment=environment, **arguments)["value"]

    def har(self, *sites: str, environment: str | None = None) -> dict[str, Any]:
        """Returns the gateway's recording of sites since their latest reset as a HAR without secrets. Without names, all
        sites of the environment are included.

        `har["log"]["_arenad"]["sites"]` tells for each site what is recorded and what is missing. Raises `ArenadError`
        with the code `not_recorded` if none of these sites is recorded.
        """
        chosen = self._chosen(sites, environment)
        if len(chosen) > 1:
            raise ambiguous(f"the sites belong to {' and '.join(chosen)}")
        ((name, names),) = chosen.items()
        har: dict[str, Any] = self._transport.request("GET", f"{path_of(name)}/har?sites={quote(','.join(names))}")
        if all(site["records"] == "none" for site in har["log"]["_arenad"]["sites"]):
            hint = "set `public: { record: all }` for a site in the environment file to record its traffic"
            raise ArenadError("the gateway does not record the traffic of these sites", code="not_recorded", hint=hint)
        return har

    def login(self, site: str, account: str | None = None, *, environment: str | None = None) -> Session:
        """Returns a session of an account; without a name, of the only account that can sign in. A session that is part of
        the snapshot is valid again after every reset."""
        path = self._site(site, environment)
        name = account or self._only_account(site, path)
        session: Session = self._transport.request("POST", f"{path}/accounts/{quote(name, safe='')}/login")
        return session

    def storage_state(
        self, site: str, account: str | None = None, *, environment: str | None = None
    ) -> StorageState:
        """Returns the session in Playwright's format, which has no place for headers."""
        return {"cookies": self.login(site, account, environment=environment)["cookies"], "origins": []}

    def episode(
        self,
        sites: Iterable[str] = (),
        *,
        task: str | None = None,
        snapshots: Mapping[str, str] | None = None,
        slots: Mapping[str, int] | None = None,
        timeout: float = 60.0,
        ttl: float | None = None,
        owner: str | None = None,
        labels: Mapping[str, str] | None = None,
        record: Recording | None = None,
        key: str | None = None,
        environment: str | None = None,
    ) -> Episode:
        """Starts an episode on these sites, on those of a native task, or on all, and returns when they can be reached.

        Use it as a context manager: `with arena.episode(["gitlab"]) as episode:`. Waits up to `timeout` seconds for
        slots, and then raises `NoSlot`. If the queue is full or the owner has too many episodes, it tries again when the
        daemon says, within the same time. `ttl` counts only when the connection to the daemon is lost. `record` keeps
        `all` requests of the episode or the `writes` among them on disk, for `har`. Repetitions with the same `key` get
        the same episode.

        >>> from arenad import Client
        >>> client = Client()
        >>> site = client.sites()[0]["name"]
        >>> with client.episode([site], labels={"run": "7"}) as episode:
        ...     episode.state, list(episode.urls) == [site]
        ('active', True)
        """
        request = self._episode_request(
            sites, task, snapshots, slots, timeout, ttl, owner, labels, record, key, environment
        )
        return request.start()

    def begin(self, task: str, *, reset: bool = False, environment: str | None = None) -> Begun:
        """Begins an episode of a native task and captures the values that its check compares with.

        With `reset`, the task's sites are first brought to the state in which the task starts. Pass the result to
        `check`.
        """
        body = {"task": task, "reset": reset}
        begun: Begun = self._transport.request("POST", f"{self._found(environment)}/checks/begin", body)
        return begun

    def check(
        self,
        begun: Begun,
        *,
        answer: str = "",
        url: str | None = None,
        cdp: str | None = None,
        environment: str | None = None,
    ) -> Checked:
        """Judges whether the agent completed the task, by its answer, its last page, and the current state of the sites.

        The environment is the one in which the episode began.
        """
        body = {"task": begun["task"], "begun": begun, "answer": answer, "url": url, "cdp": cdp}
        path = path_of(environment or begun["environment"])
        checked: Checked = self._transport.request("POST", f"{path}/checks", body)
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
        data: str | os.PathLike[str] | None = None,
        environment: str | None = None,
    ) -> Evaluation:
        """Judges an episode by the rules of `webarena`, `visualwebarena` or `webarena-verified`.

        `task` is the task as the benchmark publishes it, or its number in the file `data` (ARENAD_BENCHMARK_DATA, here
        or in the daemon). Call it before the sites are reset. The environment is the one that has the sites of the
        task.
        """
        if isinstance(task, int):
            task = published(task, data or os.environ.get("ARENAD_BENCHMARK_DATA"))
        body: dict[str, Any] = {"benchmark": benchmark, "task": task, "answer": answer, "url": url, "cdp": cdp}
        body["profiles"] = list(profiles)
        if har is not None:
            body["traffic"] = {"har": har}
        evaluation: Evaluation = self._transport.request("POST", f"{self._found(environment)}/evaluations", body)
        return evaluation

    def take_snapshot(self, site: str, name: str, *, timeout: float = 600.0, environment: str | None = None) -> Snapshot:
        """Takes a snapshot of a site in its present state."""
        accepted = self._transport.request("POST", f"{self._site(site, environment)}/snapshots", {"name": name})
        (taken,) = self._ended(accepted["operations"], timeout)
        return taken["snapshot"]  # pyright: ignore[reportTypedDictNotRequiredAccess] (it is done)

    def remove_snapshot(self, snapshot: str) -> None:
        """Removes a snapshot by its name, its id, or the beginning of its id. Raises `ArenadError` with the code `in_use`
        while a site or another snapshot needs it."""
        self._transport.request("DELETE", f"/v1/snapshots/{quote(snapshot, safe='')}")

    def prune(
        self,
        *only: str,
        older: float | None = None,
        keep_bytes: int | None = None,
        trial: bool = False,
    ) -> Pruned:
        """Removes unused objects, or with `trial` only lists them. `only` names kinds, as in `arenad prune --only`;
        `older` is the least age in seconds, and `keep_bytes` the size that may stay."""
        body = {"only": list(only), "older_seconds": older and round(older), "keep_bytes": keep_bytes, "is_trial": trial}
        pruned: Pruned = self._transport.request("POST", "/v1/prune", body)
        return pruned

    def _episode_request(
        self,
        sites: Iterable[str],
        task: str | None,
        snapshots: Mapping[str, str] | None,
        slots: Mapping[str, int] | None,
        timeout: float,
        ttl: float | None,
        owner: str | None,
        labels: Mapping[str, str] | None,
        record: Recording | None,
        key: str | None,
        environment: str | None,
    ) -> EpisodeRequest:
        if isinstance(sites, str):
            raise TypeError(f'sites are a list: ["{sites}"]')
        body = {
            "environment": environment or self._environment,
            "sites": list(sites),
            "task": task,
            "snapshots": dict(snapshots or {}),
            "slots": dict(slots or {}),
            "ttl_seconds": None if ttl is None else round(ttl),
            "owner": owner,
            "labels": dict(labels or {}),
        }
        body |= {} if record is None else {"record": record}
        return EpisodeRequest(self._transport, body, timeout=timeout, key=key)

    def _run(self, words: list[str], variables: Mapping[str, str] | None = None) -> Any:
        address, token = self._given
        return _program.run(words, address, token, variables)

    def _only_account(self, site: str, path: str) -> str:
        """Returns the name of the only account of a site that can sign in."""
        accounts = self._transport.request("GET", f"{path}/accounts")["accounts"]
        names = [account["name"] for account in accounts if account.get("login")]
        if len(names) == 1:
            return str(names[0])
        if not names:
            hint = "declare a `login` for an account in the environment file"
            raise ArenadError(f"no account of {site} can sign in", code="no_login", hint=hint)
        detail = f"{site} has several accounts: {', '.join(names)}"
        raise ArenadError(detail, code="which_account", hint="choose one with account=")

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
                what = f"{operation['kind']} of {operation['site']}"
                raise TimeoutError(f"{what} continues in the background as operation {operation['id']}")
            path = f"/v1/operations/{operation['id']}?wait={min(HOLD, left):.3f}"
            operation = self._transport.request("GET", path)
        return operation


class AsyncArena:
    """The same methods as coroutines. Each call occupies a thread until it returns.

    `episode` returns an object to use with `async with` or `await`, which gives an `AsyncEpisode`.

    >>> import asyncio
    >>> from arenad import AsyncClient
    >>> async def state() -> str:
    ...     async with AsyncClient() as client:
    ...         site = (await client.sites())[0]["name"]
    ...         async with client.episode([site]) as episode:
    ...             return episode.state
    >>> asyncio.run(state())
    'active'
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        token: str | None = None,
        environment: str | None = None,
        timeout: float = 120.0,
    ) -> None:
        arena = Arena(address, token=token, environment=environment, timeout=timeout)
        self._arena = arena
        self.version = threaded(arena.version)
        self.status = threaded(arena.status)
        self.health = threaded(arena.health)
        self.sites = threaded(arena.sites)
        self.urls = threaded(arena.urls)
        self.accounts = threaded(arena.accounts)
        self.up = threaded(arena.up)
        self.down = threaded(arena.down)
        self.tasks = threaded(arena.tasks)
        self.reset = threaded(arena.reset)
        self.verify = threaded(arena.verify)
        self.locate = threaded(arena.locate)
        self.value = threaded(arena.value)
        self.logs = threaded(arena.logs)
        self.changes = threaded(arena.changes)
        self.look = threaded(arena.look)
        self.looks = threaded(arena.looks)
        self.har = threaded(arena.har)
        self.login = threaded(arena.login)
        self.storage_state = threaded(arena.storage_state)
        self.episodes = threaded(arena.episodes)
        self.find_episode = threaded(arena.find_episode)
        self.end_episode = threaded(arena.end_episode)
        self.episode_har = threaded(arena.episode_har)
        self.queue = threaded(arena.queue)
        self.begin = threaded(arena.begin)
        self.check = threaded(arena.check)
        self.evaluate = threaded(arena.evaluate)
        self.snapshots = threaded(arena.snapshots)
        self.find_snapshot = threaded(arena.find_snapshot)
        self.snapshot_differences = threaded(arena.snapshot_differences)
        self.take_snapshot = threaded(arena.take_snapshot)
        self.remove_snapshot = threaded(arena.remove_snapshot)
        self.operation = threaded(arena.operation)
        self.find_reset = threaded(arena.find_reset)
        self.events = threaded(arena.events)
        self.certificate_key = threaded(arena.certificate_key)
        self.df = threaded(arena.df)
        self.prune = threaded(arena.prune)

    async def __aenter__(self) -> AsyncArena:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def episode_events(self, *, after: int | None = None) -> AsyncIterator[EpisodeStateEvent]:
        """Yields the states of all episodes, past and future, until the connection to the daemon ends."""
        async for event in iterated(self._arena.episode_events(after=after)):
            yield event

    def episode(
        self,
        sites: Iterable[str] = (),
        *,
        task: str | None = None,
        snapshots: Mapping[str, str] | None = None,
        slots: Mapping[str, int] | None = None,
        timeout: float = 60.0,
        ttl: float | None = None,
        owner: str | None = None,
        labels: Mapping[str, str] | None = None,
        record: Recording | None = None,
        key: str | None = None,
        environment: str | None = None,
    ) -> AsyncEpisodeStart:
        """Starts an episode, as `Arena.episode` does: `async with arena.episode(["gitlab"]) as episode:`. If the task that
        waits is cancelled, the request is withdrawn."""
        request = self._arena._episode_request(
            sites, task, snapshots, slots, timeout, ttl, owner, labels, record, key, environment
        )
        return AsyncEpisodeStart(request)
