"""Episodes for programs with asyncio."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from ._episode import Episode, EpisodeRequest
from .types import EpisodeProxy, EpisodeSite, EpisodeStateEvent, Recording, ReportedEpisode

P = ParamSpec("P")
T = TypeVar("T")


def threaded(method: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """Returns a method as a coroutine function, which runs it in a thread of asyncio's pool."""

    @functools.wraps(method)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(method, *args, **kwargs)

    return call


async def in_own_thread(work: Callable[[], T]) -> T:
    """Runs work that may wait for long. In asyncio's pool, many such waits would leave no thread for calls that end them."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def finish(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except BaseException as error:  # passed on to the waiting task
            failure = error
        try:
            loop.call_soon_threadsafe(finish, result, failure)
        except RuntimeError:
            # The loop is closed, so no task waits.
            pass

    threading.Thread(target=run, daemon=True).start()
    return await done


async def iterated(values: Iterator[T]) -> AsyncIterator[T]:
    """Yields values, each of which may be waited for for long."""
    nothing = object()
    while (value := await in_own_thread(lambda: next(values, nothing))) is not nothing:
        yield value  # type: ignore[misc]


class AsyncEpisode:
    """An episode whose methods are coroutines; see `Episode`. Each call occupies a thread until it returns."""

    def __init__(self, episode: Episode) -> None:
        self._episode = episode
        self.login = threaded(episode.login)
        self.storage_state = threaded(episode.storage_state)
        self.locate = threaded(episode.locate)
        self.value = threaded(episode.value)
        self.begin = threaded(episode.begin)
        self.evaluate = threaded(episode.evaluate)
        self.freeze = threaded(episode.freeze)
        self.unfreeze = threaded(episode.unfreeze)
        self.confirm = threaded(episode.confirm)
        self.extend = threaded(episode.extend)
        self.changes = threaded(episode.changes)
        self.look = threaded(episode.look)
        self.looks = threaded(episode.looks)
        self.har = threaded(episode.har)
        self.open_browser = threaded(episode.open_browser)
        self.act = threaded(episode.act)
        self.observe = threaded(episode.observe)
        self.elements = threaded(episode.elements)
        self.page_snapshot = threaded(episode.page_snapshot)
        self.add_step = threaded(episode.add_step)
        self.trajectory = threaded(episode.trajectory)
        self.close_browser = threaded(episode.close_browser)
        self.end = threaded(episode.end)

    async def __aenter__(self) -> AsyncEpisode:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Shielded, so that a task that is cancelled again still ends its episode.
        await asyncio.shield(asyncio.to_thread(self._episode.__exit__, kind, error, trace))

    def __repr__(self) -> str:
        return f"<AsyncEpisode {self.id} {self.state}>"

    @property
    def id(self) -> str:
        """The id, which is not a secret."""
        return self._episode.id

    @property
    def token(self) -> str:
        """The secret that opens the episode's state, hold and end to a client on TCP."""
        return self._episode.token

    @property
    def reported(self) -> ReportedEpisode:
        """The episode as the daemon has last told it."""
        return self._episode.reported

    @property
    def state(self) -> str:
        """`queued`, `preparing`, `active`, `frozen`, `released`, `expired` or `void`."""
        return self._episode.state

    @property
    def environment(self) -> str:
        """The name of the environment."""
        return self._episode.environment

    @property
    def labels(self) -> dict[str, str]:
        """The labels, among them `task` for an episode of a native task."""
        return self._episode.labels

    @property
    def sites(self) -> list[EpisodeSite]:
        """The sites with their slots, in the order of the request."""
        return self._episode.sites

    @property
    def is_proxied(self) -> bool:
        """Whether `urls` lead through the episode proxy."""
        return self._episode.is_proxied

    @property
    def urls(self) -> dict[str, str]:
        """The URL of each site: all public, or all through the episode proxy."""
        return self._episode.urls

    @property
    def port_urls(self) -> dict[str, str]:
        """The URL of each site for a client that takes no proxy; see `Episode.port_urls`."""
        return self._episode.port_urls

    @property
    def proxy(self) -> EpisodeProxy | None:
        """The episode proxy for Playwright: `await browser.new_context(proxy=episode.proxy)`."""
        return self._episode.proxy

    @property
    def proxy_url(self) -> str | None:
        """The episode proxy in one URL, for other clients."""
        return self._episode.proxy_url

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that benchmarks read, such as `SHOPPING`."""
        return self._episode.variables

    @property
    def port_variables(self) -> dict[str, str]:
        """The same variables with `port_urls`."""
        return self._episode.port_variables

    @property
    def env(self) -> dict[str, str]:
        """The variables that the command of `arenad run` gets; see `Episode.env`."""
        return self._episode.env

    async def events(self, *, after: int | None = None) -> AsyncIterator[EpisodeStateEvent]:
        """Yields the states of the episode, past and future, until its end."""
        async for event in iterated(self._episode.events(after=after)):
            yield event

    async def fork(
        self,
        children: int = 1,
        *,
        timeout: float = 60.0,
        ttl: float | None = None,
        owner: str | None = None,
        labels: Mapping[str, str] | None = None,
        record: Recording | None = None,
    ) -> list[AsyncEpisode]:
        """Returns new episodes whose sites start in the present state of this one; see `Episode.fork`."""
        fork = functools.partial(
            self._episode.fork, children, timeout=timeout, ttl=ttl, owner=owner, labels=labels, record=record
        )
        return [AsyncEpisode(episode) for episode in await in_own_thread(fork)]


class AsyncEpisodeStart:
    """An episode that is about to start: `async with` it, or await it and end it yourself."""

    def __init__(self, request: EpisodeRequest) -> None:
        self._request = request
        self._episode: AsyncEpisode | None = None

    def __await__(self) -> Generator[Any, None, AsyncEpisode]:
        return self._started().__await__()

    async def __aenter__(self) -> AsyncEpisode:
        self._episode = await self._started()
        return self._episode

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._episode is not None:
            await self._episode.__aexit__(kind, error, trace)

    async def _started(self) -> AsyncEpisode:
        try:
            return AsyncEpisode(await in_own_thread(self._request.start))
        except asyncio.CancelledError:
            threading.Thread(target=self._request.withdraw, daemon=True).start()
            raise
