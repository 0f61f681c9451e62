"""BrowserGym with a pristine episode for each `reset`.

`with_episodes` wraps any environment that `gym.make` has made. Each `reset` ends the episode before it, starts another
one, and lets BrowserGym's browser and the benchmark's own code reach the sites of this episode:

    import gymnasium as gym
    import browsergym.webarena
    from arenad.browsergym import with_episodes

    env = with_episodes(gym.make("browsergym/webarena.310"), sites=["shopping"])
    observation, info = env.reset()

The native tasks of an environment are tasks of BrowserGym as well, which arenad judges:

    from arenad.browsergym import make

    env = make("browsergym/arenad.turkle.left.1")

A void episode raises `EpisodeVoid` from `reset` or `step`, and an episode without a verdict raises `Undecided`. Neither
of them has a reward, and least of all one of 0: repeat the episode.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import gymnasium as gym
import playwright.sync_api
from browsergym.core.registration import register_task
from browsergym.core.task import AbstractBrowserTask

from ._client import Arena
from ._episode import Episode
from ._errors import ArenadError, EpisodeEnded, EpisodeVoid, decided
from ._errors import Undecided as Undecided
from ._sandbox import HERE, at_proxy
from .types import Recording

ATTEMPTS = 3
"""The number of episodes that one `reset` starts if the environment fails them before the agent acts."""

TOLD_WITHIN = 2.0
"""Seconds for which a result of 0 waits for the news that a container has died."""

PREFIX = "browsergym/arenad."
"""The beginning of the names of native tasks in Gymnasium's registry."""

_MODULES = ("webarena", "visualwebarena")
"""Packages that read the addresses of the sites from the environment variables, once, when they are imported."""

_VARIABLES = threading.RLock()


class EpisodeWrapper(gym.Wrapper[Any, Any, Any, Any]):
    """An environment of BrowserGym that runs in an episode from each `reset` to the next, or to `close`.

    The requests of the browser, and those that the benchmark's own code sends during `reset` and `step`, go through the
    episode proxy. Between these calls the process has its own variables, so that an agent reaches its model.
    """

    def __init__(self, env: gym.Env[Any, Any], client: Arena, arguments: Mapping[str, Any]) -> None:
        super().__init__(env)
        self._client = client
        self._arguments = dict(arguments)
        self._episode: Episode | None = None
        inner = cast(Any, env.unwrapped)
        self._context_kwargs: dict[str, Any] = dict(inner.pw_context_kwargs)
        self._task_kwargs: dict[str, Any] = dict(inner.task_kwargs)

    @property
    def episode(self) -> Episode:
        """The episode that runs. Raises `RuntimeError` before the first `reset` and after `close`."""
        if self._episode is None:
            raise RuntimeError("no episode runs: call reset() first")
        return self._episode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode and resets the environment in it. `info["arenad"]` has the episode's id, slots and URLs."""
        for attempt in range(1, ATTEMPTS + 1):
            self._release()
            try:
                return self._reset(seed, options)
            except EpisodeVoid:
                self._release()
                if attempt == ATTEMPTS:
                    raise
            except BaseException:
                self._release()
                raise
        raise AssertionError("the last attempt returns or raises")

    def _reset(self, seed: int | None, options: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
        episode = self._episode = self._client.episode(**self._arguments)
        if episode.proxy is None:
            hint = "start the daemon with --proxy; `arenad status` says why there is none"
            raise ArenadError("the daemon offers no episode proxy, by which browsers reach their episode", hint=hint)
        inner = cast(Any, self.env.unwrapped)
        inner.pw_context_kwargs = {**self._context_kwargs, "proxy": dict(episode.proxy)}
        if _is_native(self.env):
            inner.task_kwargs = {**self._task_kwargs, "episode": episode}
        with self._reaching(episode):
            observation, info = self.env.reset(seed=seed, options=options) if options else self.env.reset(seed=seed)
        episode.confirm()
        return observation, {**info, "arenad": _described(episode)}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Acts in the environment. Raises `EpisodeVoid` if the environment failed the episode meanwhile."""
        episode = self.episode
        with self._reaching(episode):
            observation, reward, terminated, truncated, info = self.env.step(action)
            if truncated and not terminated and _is_native(self.env):
                # The agent has not answered in time, but its last page and the sites count all the same.
                reward = decided(episode.evaluate(url=cast(Any, self.env.unwrapped).page.url))
        is_over = terminated or truncated
        # BrowserGym turns errors of a dead site into observations, and the benchmark's code into a reward of 0.
        episode.confirm(TOLD_WITHIN if is_over and not reward else 0.0)
        return observation, reward, terminated, truncated, info

    def close(self) -> None:
        """Closes the environment, and gives the sites back."""
        try:
            self.env.close()
        finally:
            self._release()

    @contextlib.contextmanager
    def _reaching(self, episode: Episode) -> Iterator[None]:
        """Sets the process's variables for the code of the benchmark. Turns its errors into the end of the episode, if
        that has ended."""
        try:
            with _variables(variables(episode)):
                yield
        except EpisodeEnded:
            raise
        except Exception as error:
            try:
                episode.confirm(TOLD_WITHIN)
            except EpisodeEnded as told:
                raise told from error
            raise

    def _release(self) -> None:
        episode, self._episode = self._episode, None
        if episode is not None:
            with contextlib.suppress(EpisodeEnded):
                episode.end()


def with_episodes(
    env: gym.Env[Any, Any],
    *,
    client: Arena | None = None,
    sites: Iterable[str] = (),
    task: str | None = None,
    snapshots: Mapping[str, str] | None = None,
    timeout: float = 3600.0,
    owner: str | None = None,
    labels: Mapping[str, str] | None = None,
    record: Recording | None = None,
    environment: str | None = None,
) -> EpisodeWrapper:
    """Wraps an environment of BrowserGym, so that each `reset` gets an episode on these sites, by default on all.

    The other arguments are those of `Client.episode`. A benchmark's tasks are judged by its own code, a native task by
    arenad.
    """
    if env.spec is not None and _is_native(env):
        task = task or env.spec.id.removeprefix(PREFIX)
    arguments = {
        "sites": [] if task is not None else list(sites),
        "task": task,
        "snapshots": snapshots,
        "timeout": timeout,
        "owner": owner,
        "labels": labels,
        "record": record,
        "environment": environment,
    }
    return EpisodeWrapper(env, client or Arena(), arguments)


def make(
    name: str,
    *,
    client: Arena | None = None,
    sites: Iterable[str] = (),
    timeout: float = 3600.0,
    environment: str | None = None,
    episode: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> EpisodeWrapper:
    """Makes an environment of BrowserGym with an episode for each `reset`; `kwargs` are those of `gym.make`.

    `name` is `browsergym/…`, and `browsergym/arenad.TASK` for a native task. `episode` has further arguments of
    `with_episodes`.
    """
    if name.startswith(PREFIX):
        register(name.removeprefix(PREFIX))
    env = gym.make(name, **{"disable_env_checker": True, **kwargs})
    wanted = dict(episode or {})
    return with_episodes(env, client=client, sites=sites, timeout=timeout, environment=environment, **wanted)


class ArenadTask(AbstractBrowserTask):  # type: ignore[misc]
    """A native task: the browser is signed in and opens the start page, and arenad judges the answer or the sites.

    The task is over when the agent sends a message or declares it infeasible. Then the last page and the state of the
    sites are judged as well.
    """

    def __init__(self, seed: int, episode: Episode | None = None) -> None:
        super().__init__(seed)
        self.slow_mo = 0
        self.timeout = 30_000
        if episode is None:
            raise RuntimeError("a native task runs in an episode: use arenad.browsergym.make or with_episodes")
        self._episode = episode

    @classmethod
    def get_task_id(cls) -> str:
        """The name of all native tasks in common."""
        return "arenad"

    def setup(self, page: playwright.sync_api.Page) -> tuple[str, dict[str, Any]]:
        """Signs the browser in and opens the start page. The goal is the intent of the task."""
        begun = self._episode.begin()
        headers: dict[str, str] = {}
        for site, account in begun["accounts"].items():
            session = self._episode.login(site, account)
            page.context.add_cookies(cast(Any, session["cookies"]))
            headers |= session["headers"]
        if headers:
            page.context.set_extra_http_headers(headers)
        page.goto(begun["start"])
        return begun["intent"], {"task": begun["task"]}

    def validate(
        self, page: playwright.sync_api.Page, chat_messages: list[dict[str, Any]]
    ) -> tuple[float, bool, str, dict[str, Any]]:
        """Judges the episode when the agent has answered; without an answer the task goes on."""
        last = chat_messages[-1] if chat_messages else {"role": "user"}
        # The environment itself greets the user before the goal is told.
        has_answered = len(chat_messages) > 2 and last["role"] in ("assistant", "infeasible")
        if not has_answered:
            return 0.0, False, "", {}
        answer = "N/A" if last["role"] == "infeasible" else str(last["message"])
        evaluation = self._episode.evaluate(answer=answer, url=page.url)
        return decided(evaluation), True, "", {"verdict": evaluation["verdict"], "evaluation": evaluation}

    def teardown(self) -> None:
        """Does nothing: the episode ends with the environment or its next reset."""


def register(*tasks: str) -> None:
    """Registers native tasks as `browsergym/arenad.TASK`. `make` and `arenad.agentlab` do so by themselves."""
    for task in tasks:
        if f"{PREFIX}{task}" not in gym.registry:
            register_task(f"arenad.{task}", ArenadTask)


def variables(episode: Episode) -> dict[str, str]:
    """Returns the variables by which the benchmarks' code reaches an episode, among them `http_proxy`.

    The addresses are the same for every episode, because that code reads them once for each process.
    """
    found = at_proxy(episode.variables, episode)
    if episode.proxy_url is not None:
        found |= {"http_proxy": episode.proxy_url, "HTTP_PROXY": episode.proxy_url}
        for name in ("no_proxy", "NO_PROXY"):
            earlier = os.environ.get(name, "").strip()
            found[name] = f"{earlier},{HERE}" if earlier else HERE
    return found


@contextlib.contextmanager
def _variables(given: Mapping[str, str]) -> Iterator[None]:
    """Sets variables of the process while a block runs. Other threads wait with theirs."""
    with _VARIABLES:
        earlier = {name: os.environ.get(name) for name in given}
        if any(os.environ.get(name) != value for name, value in given.items() if name.startswith(("WA_", "VWA_"))):
            _forget_stale(given)
        os.environ.update(given)
        try:
            yield
        finally:
            for name, value in earlier.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


_imported_for: dict[str, str] = {}
"""The addresses with which the benchmarks' modules were imported last."""


def _forget_stale(given: Mapping[str, str]) -> None:
    """Forgets modules that were imported with other addresses, so that they are imported again."""
    addresses = {name: value for name, value in given.items() if name.startswith(("WA_", "VWA_"))}
    if addresses != _imported_for:
        for name in [name for name in sys.modules if name.partition(".")[0] in _MODULES]:
            del sys.modules[name]
        _imported_for.clear()
        _imported_for.update(addresses)


def _is_native(env: gym.Env[Any, Any]) -> bool:
    return env.spec is not None and env.spec.id.startswith(PREFIX)


def _described(episode: Episode) -> dict[str, Any]:
    return {
        "episode": episode.id,
        "environment": episode.environment,
        "slots": {site["site"]: site["slot"] for site in episode.sites},
        "urls": episode.urls,
    }
