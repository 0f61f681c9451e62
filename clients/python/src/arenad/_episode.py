"""Episodes: leases on sites, which end with their block or with their process."""

from __future__ import annotations

import base64
import os
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Literal
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from ._errors import ArenadError, EpisodeEnded, Unreachable, ended
from ._hold import Hold
from ._tasks import published
from ._transport import ServerEvents, Transport
from .types import (
    Begun,
    BrowserStep,
    EpisodeChanges,
    EpisodeEvaluation,
    EpisodeProxy,
    EpisodeSite,
    EpisodeStateEvent,
    Located,
    Look,
    PageElements,
    PageSnapshot,
    Recording,
    ReportedEpisode,
    Session,
    StartedEpisode,
    StorageState,
    Trajectory,
    TrajectoryStep,
)

ATTEMPTS = 3
"""The number of attempts to ask for an episode if the answer is lost."""

FORK_TIMEOUT = 600.0
"""Seconds within which the state of an episode is copied."""

RETRY_AFTER = 2.0
"""Seconds before the next attempt if a refusal does not say when to try again."""


class Episode:
    """A lease on sites, which no other client changes meanwhile.

    As a context manager, it ends with the block. It also ends with the process, even if that is killed: the client holds
    it by a connection. Threads may share an episode. A forked process must not use it.

    Methods raise `EpisodeVoid` if the environment failed the episode, and `EpisodeEnded` if it has ended otherwise. So
    does the end of the block, unless the episode was evaluated: what the block did after that end did not reach the
    sites.

    >>> from arenad import Client, EpisodeVoid
    >>> try:
    ...     with Client().episode() as episode:
    ...         ...                                     # the agent acts on episode.urls
    ... except EpisodeVoid as void:
    ...     print(f"repeat it: {void.reason}")
    Ellipsis
    """

    def __init__(self, transport: Transport, started: StartedEpisode, events: ServerEvents | None = None) -> None:
        self._transport = transport
        self._started = started
        self._process = os.getpid()
        self._is_ended = False
        self._is_judged = False
        self._begun: Begun | None = None
        try:
            self._hold = Hold(transport, started["episode"], events)
        except ArenadError as error:
            # An episode that is held belongs to another client, which has asked with the same key.
            if error.code != "already_held":
                self._release_quietly()
            raise

    def __enter__(self) -> Episode:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process != os.getpid() or self._is_ended:
            return
        try:
            self.end()
        except EpisodeEnded as told:
            # The end of the episode explains a failure of the block; but what stops the program is not a failure.
            if error is None and not self._is_judged or isinstance(error, Exception) and not isinstance(error, EpisodeEnded):
                raise told from error
        except ArenadError:
            if error is None:
                raise

    def __repr__(self) -> str:
        return f"<Episode {self.id} {self.state}>"

    @property
    def id(self) -> str:
        """The id, which is not a secret."""
        return self._started["episode"]["id"]

    @property
    def token(self) -> str:
        """The secret that opens the episode's state, hold and end to a client on TCP."""
        return self._started["token"]

    @property
    def reported(self) -> ReportedEpisode:
        """The episode as the daemon has last told it."""
        return self._hold.latest

    @property
    def state(self) -> str:
        """`queued`, `preparing`, `active`, `frozen`, `released`, `expired` or `void`."""
        return self.reported["state"]

    @property
    def environment(self) -> str:
        """The name of the environment."""
        return self._started["episode"]["environment"]

    @property
    def labels(self) -> dict[str, str]:
        """The labels, among them `task` for an episode of a native task."""
        return self._started["episode"]["labels"]

    @property
    def sites(self) -> list[EpisodeSite]:
        """The sites with their slots, in the order of the request."""
        return self.reported["sites"]

    @property
    def is_proxied(self) -> bool:
        """Whether `urls` lead through the episode proxy, because a site has no public port in this episode."""
        return any(site["url"] is None and site["proxy_url"] is not None for site in self.sites)

    @property
    def urls(self) -> dict[str, str]:
        """The URL of each site: all public, or all through the episode proxy, which the client must then use."""
        kind = "proxy_url" if self.is_proxied else "url"
        return {site["site"]: site[kind] for site in self.sites if site[kind] is not None}  # type: ignore[literal-required]

    @property
    def port_urls(self) -> dict[str, str]:
        """The URL of each site for a client that takes no proxy: at the own port of its slot, or else the public one.
        A site that has neither is left out."""
        direct = {site["site"]: site.get("port_url") or site["url"] for site in self.sites}
        return {site: url for site, url in direct.items() if url is not None}

    @property
    def proxy(self) -> EpisodeProxy | None:
        """The episode proxy for Playwright: `browser.new_context(proxy=episode.proxy)`. `None` if the daemon offers none."""
        return self._started["proxy"]

    @property
    def proxy_url(self) -> str | None:
        """The episode proxy in one URL, for other clients: `requests.get(url, proxies={"http": episode.proxy_url})`."""
        proxy = self.proxy
        if proxy is None:
            return None
        parts = urlsplit(proxy["server"])
        credentials = f"{quote(proxy['username'], safe='')}:{quote(proxy['password'], safe='')}"
        return urlunsplit(parts._replace(netloc=f"{credentials}@{parts.netloc}"))

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that benchmarks read, such as `SHOPPING`."""
        return self.reported.get("variables", {})

    @property
    def port_variables(self) -> dict[str, str]:
        """The same variables with `port_urls`. Empty if a site cannot be reached without the proxy."""
        return self.reported.get("port_variables", {})

    @property
    def env(self) -> dict[str, str]:
        """The variables that the command of `arenad run` gets: `variables`, `ARENAD_EPISODE`, `ARENAD_URL_SITE` for each
        site, and `ARENAD_PROXY_URL` and its parts.

        >>> import subprocess, os
        >>> from arenad import Client
        >>> with Client().episode() as episode:
        ...     done = subprocess.run(["printenv", "ARENAD_EPISODE"], env={**os.environ, **episode.env}, stdout=-1)
        ...     done.stdout.decode().strip() == episode.id
        True
        """
        found = {**self.variables, "ARENAD_EPISODE": self.id, "ARENAD_EPISODE_TOKEN": self.token}
        found |= {_variable("ARENAD_URL", site): url for site, url in self.urls.items()}
        ports = {site["site"]: site.get("port_url") for site in self.sites}
        found |= {_variable("ARENAD_PORT_URL", site): url for site, url in ports.items() if url is not None}
        if self.proxy is not None and self.proxy_url is not None:
            found |= {f"ARENAD_PROXY_{name.upper()}": str(value) for name, value in self.proxy.items()}
            found["ARENAD_PROXY_URL"] = self.proxy_url
        return found

    def login(self, site: str, account: str | None = None) -> Session:
        """Returns a session of an account on the episode's slot, with its cookies or its headers; without a name, of the
        only account that can sign in."""
        session: Session = self._ask("POST", f"/login/{quote(site, safe='')}{_account(account)}")
        return session

    def locate(
        self, site: str, locator: str, *, page: str | None = None, cdp: str | None = None, **arguments: object
    ) -> Located:
        """Reads a value on the episode's slot of a site, with its evidence; see `Arena.locate`."""
        texts = {name: str(value) for name, value in arguments.items()}
        body = {"locator": locator, "arguments": texts, "page": page, "cdp": cdp}
        located: Located = self._ask("POST", f"/locate/{quote(site, safe='')}", body)
        return located

    def value(
        self, site: str, locator: str, *, page: str | None = None, cdp: str | None = None, **arguments: object
    ) -> Any:
        """Reads a value on the episode's slot of a site.

        >>> from arenad import Client
        >>> with Client().episode() as episode:
        ...     site = episode.sites[0]["site"]
        ...     type(episode.value(site, "http: GET / | status"))
        <class 'int'>
        """
        return self.locate(site, locator, page=page, cdp=cdp, **arguments)["value"]

    def storage_state(self, site: str, account: str | None = None) -> StorageState:
        """Returns the session of an account in Playwright's format; without a name, of the only one that can sign in."""
        state: StorageState = self._ask("GET", f"/storage-state/{quote(site, safe='')}{_account(account)}")
        return state

    def begin(self, task: str | None = None) -> Begun:
        """Captures the values that the check of a native task compares with, by default of the task that the episode was
        started with. `evaluate` uses them."""
        begun: Begun = self._ask("POST", "/evaluations/begin", {"task": task})
        self._begun = begun
        return begun

    def evaluate(
        self,
        task: Any = None,
        *,
        benchmark: str | None = None,
        answer: Any = "",
        url: str | None = None,
        cdp: str | None = None,
        har: Any = None,
        profiles: Iterable[str] = ("compat",),
        begun: Begun | None = None,
        data: str | os.PathLike[str] | None = None,
        certificate: bool = True,
    ) -> EpisodeEvaluation:
        """Judges the episode by the present state of its sites. It is frozen meanwhile.

        By default it is judged by the native task that it was started with. With `benchmark`, `task` is a task of it, or
        its number in the file `data`, as for `Arena.evaluate`. `arenad verdict verify` verifies the `certificate` of the
        answer, which names the content of every store; without it the stores are not read.
        """
        body: dict[str, Any]
        if benchmark is None:
            body = {"task": task, "begun": begun or self._begun, "answer": answer, "url": url, "cdp": cdp}
        else:
            if isinstance(task, int):
                task = published(task, data or os.environ.get("ARENAD_BENCHMARK_DATA"))
            judged = {"benchmark": benchmark, "task": task, "answer": answer, "url": url or "", "cdp": cdp}
            judged["profiles"] = list(profiles)
            if har is not None:
                judged["traffic"] = {"har": har}
            body = {"benchmark": judged}
        body["certificate"] = certificate
        evaluation: EpisodeEvaluation = self._ask("POST", "/evaluations", body)
        if evaluation["verdict"] == "void" and evaluation["ending"] is not None:
            raise ended(evaluation["ending"])
        self._is_judged = True
        return evaluation

    def freeze(self) -> None:
        """Freezes the episode until `unfreeze`: no request of a client reaches its slots, by whatever address."""
        self._ask("POST", "/freeze")

    def unfreeze(self) -> None:
        """Ends the freeze."""
        self._ask("POST", "/unfreeze")

    def confirm(self, within: float = 0.0) -> None:
        """Asks the daemon whether the episode still runs, and raises `EpisodeVoid` or `EpisodeEnded` if it does not.

        With `within`, an end that comes in these seconds counts as well: the daemon may learn later than the client that
        a container has died. Call it before a result is trusted that the client has computed by itself.
        """
        if within > 0:
            told = self._hold.ends_within(within)
            if told is not None:
                raise ended(told)
        reported: ReportedEpisode = self._ask("GET", "")
        if reported["ending"] is not None:
            raise ended(reported["ending"])

    def extend(self, seconds: float | None = None) -> float:
        """Sets the time to live from now on, and returns the seconds that are left. It is suspended while the client holds
        the episode, which it does until the end."""
        body = {"extend_seconds": None if seconds is None else round(seconds)}
        left: float = self._ask("POST", "/heartbeat", body)["left_seconds"]
        return left

    def changes(
        self,
        sites: Iterable[str] = (),
        *,
        since: int | None = None,
        until: int | None = None,
        values: bool = False,
    ) -> EpisodeChanges:
        """Returns the rows, sequences, definitions and files that the episode has changed since its start, by default on
        all of its sites.

        `since` and `until` are numbers of looks, for the changes since one look or between two. With `values`, the rows
        have their values. The episode must not have ended. The sites are compared one by one: to get states of one
        moment, freeze the episode first.
        """
        if isinstance(sites, str):
            raise TypeError(f'sites are a list: ["{sites}"]')
        query: list[tuple[str, str | int]] = [("site", site) for site in sites]
        query += [("since", since)] if since is not None else []
        query += [("until", until)] if until is not None else []
        query += [("values", "true")] if values else []
        changes: EpisodeChanges = self._ask("GET", "/changes" + (f"?{urlencode(query)}" if query else ""))
        return changes

    def look(self) -> int:
        """Keeps the present state of the sites, and returns its number, for `since` and `until` of `changes`."""
        number: int = self._ask("POST", "/looks")["number"]
        return number

    def looks(self) -> list[Look]:
        """Returns the kept states that all compared sites of the episode have."""
        looks: list[Look] = self._ask("GET", "/looks")["looks"]
        return looks

    def open_browser(
        self,
        url: str | None = None,
        *,
        accounts: Mapping[str, str | None] | None = None,
        viewport: tuple[int, int] | None = None,
        observation: Literal["accessibility_tree", "html", "set_of_marks", "none"] = "accessibility_tree",
        current_viewport_only: bool = False,
        screenshot: bool = False,
        elements: bool = False,
        files: Mapping[str, bytes] | None = None,
        trajectory: bool = False,
    ) -> BrowserStep:
        """Opens a browser of the daemon for the episode, in place of the one that it has, and returns what it shows.

        The daemon needs Chromium. `accounts` are signed in, by site; None is the only account that can sign in. If `url`
        cannot be opened, the answer says so in `error`. `observation="set_of_marks"` numbers the elements on a screenshot,
        as VisualWebArena does. `files` are those that the agent can upload with `upload [id] [name]`, by name.
        With `trajectory`, each action is recorded as a step, which `trajectory()` returns.
        """
        body: dict[str, Any] = {
            "url": url,
            "accounts": dict(accounts or {}),
            "observation": observation,
            "current_viewport_only": current_viewport_only,
            "screenshot": screenshot,
            "elements": elements,
            "files": {name: base64.b64encode(content).decode() for name, content in (files or {}).items()},
        }
        if trajectory:
            body["trajectory"] = True
        if viewport is not None:
            body["viewport"] = {"width": viewport[0], "height": viewport[1]}
        step: BrowserStep = self._ask("POST", "/browser/reset", body)
        return step

    def act(self, action: str, *, selector: str | None = None) -> BrowserStep:
        """Performs an action in WebArena's notation, such as `click [12]`, in the browser of the episode. An action that
        fails is no exception: the answer says so in `error`.

        With `selector`, the action is performed on the first element that this CSS selector matches, whatever the id in
        the action means.
        """
        body = {"action": action} if selector is None else {"action": action, "selector": selector}
        step: BrowserStep = self._ask("POST", "/browser/step", body)
        return step

    def elements(self) -> PageElements:
        """Returns the elements of the current page that people act on, with the CSS selectors for `act`."""
        page: PageElements = self._ask("GET", "/browser/elements")
        return page

    def page_snapshot(self, selector: str | None = None) -> PageSnapshot:
        """Returns the whole content of the current page: its nodes, and an archive (MHTML) with its resources.

        `selector` is a CSS selector; `element` of the answer is the node of the first element that it matches.
        """
        query = "" if selector is None else "?" + urlencode({"selector": selector})
        page: PageSnapshot = self._ask("GET", "/browser/snapshot" + query)
        return page

    def observe(self) -> BrowserStep:
        """Returns what the browser of the episode shows now."""
        step: BrowserStep = self._ask("GET", "/browser")
        return step

    def close_browser(self) -> None:
        """Closes the browser of the episode, which otherwise ends with it."""
        self._ask("DELETE", "/browser")

    def add_step(
        self,
        url: str,
        *,
        html: str | None = None,
        selector: str | None = None,
        element_value: str | None = None,
        text_content: str | None = None,
        done: bool = False,
    ) -> None:
        """Records a step of an agent that has a browser of its own, for benchmarks that judge steps, such as WebCanvas.

        `url` and `html` are those of the page before the action, `selector` is the CSS selector or XPath of the action's
        element, and `element_value` the typed text or the element's label. `text_content` is an answer.
        """
        step: TrajectoryStep = {
            "url": url,
            "html": html,
            "selector": selector,
            "element_value": element_value,
            "text_content": text_content,
            "done": done,
        }
        self._ask("POST", "/observations", step)

    def trajectory(self) -> Trajectory:
        """Returns the recorded steps, in the form that `arenad eval --benchmark webcanvas --answer-file` reads."""
        trajectory: Trajectory = self._ask("GET", "/observations")
        return trajectory

    def har(self) -> dict[str, Any]:
        """Returns the requests of an episode that is recorded (`record`), or else the traffic of its sites that the
        environment records, as a HAR without secrets."""
        har: dict[str, Any] = self._ask("GET", "/har")
        return har

    def events(self, *, after: int | None = None) -> Iterator[EpisodeStateEvent]:
        """Yields the states of the episode, past and future, until its end."""
        while True:
            stream = self._transport.stream(self._path + "/events" + ("" if after is None else f"?after={after}"))
            try:
                for _, event in stream:
                    if "seq" not in event:
                        # The daemon keeps only a number of events.
                        raise ArenadError(event["message"], code="not_found")
                    after = event["seq"]
                    yield event
                    if event["ending"] is not None:
                        return
            finally:
                stream.close()
            time.sleep(0.2)

    def fork(
        self,
        children: int = 1,
        *,
        timeout: float = 60.0,
        ttl: float | None = None,
        owner: str | None = None,
        labels: Mapping[str, str] | None = None,
        record: Recording | None = None,
    ) -> list[Episode]:
        """Returns new episodes whose sites start in the present state of this one, which goes on.

        Sessions and everything else in the stores are equal; what is only in the memory of a site's processes is not.
        Without `record`, the children are recorded as this episode is; the record of a child begins with that of its
        parent.
        Raises `NoSlot` if not all children get their slots within `timeout` seconds; then there is no child. Each child
        is independent: it ends with a block of its own, with `end`, or with the process.
        """
        body: dict[str, Any] = {"children": children, "wait_seconds": round(timeout), "detach": True}
        body |= {} if owner is None else {"owner": owner}
        body |= {} if labels is None else {"labels": dict(labels)}
        body |= {} if ttl is None else {"ttl_seconds": round(ttl)}
        body |= {} if record is None else {"record": record}
        path, headers = f"{self._path}/fork", {"Idempotency-Key": f"python-{uuid.uuid4()}"}
        forked = self._transport.request("POST", path, body, headers, timeout=FORK_TIMEOUT)
        episodes: list[Episode] = []
        try:
            for started in forked["children"]:
                episodes.append(Episode(self._transport, started))
            for episode in episodes:
                episode._granted()
        except BaseException:
            for started in forked["children"]:
                _release(self._transport, started["episode"]["id"])
            raise
        return episodes

    def end(self) -> None:
        """Ends the episode, and returns when its client's connections are cut. The sites go back to their baselines in the
        background. Raises `EpisodeEnded` if the episode had ended before."""
        if self._is_ended:
            return
        self._is_ended = True
        try:
            self._ask("DELETE", "")
        finally:
            self._hold.close()

    @property
    def _path(self) -> str:
        return f"/v1/episodes/{self.id}"

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        try:
            return self._transport.request(method, self._path + path, body)
        except Unreachable as error:
            # The daemon that `Arena.up` started stops when the last environment goes down, which ends the episode.
            told = self._hold.told_end()
            if told is None:
                raise
            raise ended(told) from error

    def _granted(self) -> Episode:
        """Waits until the client can reach the sites."""
        try:
            reached = self._hold.wait(lambda episode: episode["state"] in ("active", "frozen"))
        except BaseException:
            self._release_quietly()
            raise
        if reached["ending"] is not None:
            self._hold.close()
            self._is_ended = True
            raise ended(reached["ending"])
        return self

    def _release_quietly(self) -> None:
        self._is_ended = True
        _release(self._transport, self.id)
        if hasattr(self, "_hold"):
            self._hold.close()


class EpisodeRequest:
    """A request for an episode, which another thread may withdraw."""

    def __init__(
        self,
        transport: Transport,
        body: Mapping[str, Any],
        *,
        timeout: float,
        key: str | None,
    ) -> None:
        self._transport = transport
        self._body = dict(body)
        self._timeout = timeout
        # With a key, a repetition after a lost answer gets the same episode.
        self._key = key or f"python-{uuid.uuid4()}"
        self._withdrawn = threading.Event()
        self._lock = threading.Lock()
        self._episode: Episode | None = None

    def start(self) -> Episode:
        """Asks for the episode, waits for its slots, and returns it when its client can reach the sites."""
        started, events = self._asked()
        with self._lock:
            episode = self._episode = Episode(self._transport, started, events)
            if self._withdrawn.is_set():
                episode._release_quietly()
        return episode._granted()

    def withdraw(self) -> None:
        """Ends the episode, or the wait for it."""
        with self._lock:
            self._withdrawn.set()
            if self._episode is not None:
                self._episode._release_quietly()

    def _asked(self) -> tuple[StartedEpisode, ServerEvents]:
        """Sends the request. Waits as long as a refusal says, if the time suffices, and tries again."""
        deadline = time.monotonic() + self._timeout
        while True:
            left = max(0.0, deadline - time.monotonic())
            # Held from the beginning, so that no end of this process leaves the episode behind.
            body = {**self._body, "wait_seconds": round(left), "hold": True}
            try:
                return self._sent(body)
            except ArenadError as error:
                pause = RETRY_AFTER if error.retry_after is None else error.retry_after
                left = deadline - time.monotonic()
                if error.status not in (429, 503) or isinstance(error, EpisodeEnded) or pause > left:
                    raise
                if self._withdrawn.wait(pause):
                    raise

    def _sent(self, body: Mapping[str, Any]) -> tuple[StartedEpisode, ServerEvents]:
        headers = {"Idempotency-Key": self._key}
        for attempt in range(1, ATTEMPTS + 1):
            try:
                events = self._transport.stream("/v1/episodes", "POST", body, headers)
                _, started = next(events, (None, None))
                if started is None:
                    raise Unreachable("the daemon ended its answer before the first event", code="unreachable")
                return started, events
            except Unreachable as error:
                # The daemon may have started the episode, so the repetition is word for word the same.
                if attempt == ATTEMPTS or error.code != "unreachable":
                    raise
                time.sleep(0.2 * attempt)
        raise AssertionError("the last attempt returns or raises")


def _release(transport: Transport, id: str) -> None:
    """Ends an episode that the caller never gets. If the request fails, it ends when its time to live is over."""
    try:
        transport.request("DELETE", f"/v1/episodes/{id}", timeout=10.0)
    except ArenadError:
        pass


def _account(name: str | None) -> str:
    return "" if name is None else f"?account={quote(name, safe='')}"


def _variable(prefix: str, site: str) -> str:
    """Returns the name of a variable that has a URL of a site."""
    return f"{prefix}_" + "".join(letter.upper() if letter.isascii() and letter.isalnum() else "_" for letter in site)
