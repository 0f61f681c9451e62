"""The connection that holds an episode: when the process ends, however it ends, the connection closes and so does the
episode."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable

from ._errors import ArenadError, EpisodeEnded, Unreachable
from ._transport import ServerEvents, Transport
from .types import EpisodeEnding, ReportedEpisode

HOLD_AGAIN_WITHIN = 15.0
"""Seconds that a restarted daemon waits for the clients of its episodes."""

PAUSE = 0.2
"""Seconds between two attempts to hold an episode again."""

READ_WITHIN = 1.0
"""Seconds within which the thread reads what a daemon sent before it stopped."""


class Hold:
    """Holds one episode, and keeps its latest state. A thread reads the stream of states.

    After a break of the connection, for example because the daemon was restarted, the thread holds the episode again.
    """

    def __init__(self, transport: Transport, episode: ReportedEpisode, events: ServerEvents | None = None) -> None:
        """Follows `events`, the connection that holds the episode already, or else begins to hold it."""
        self._transport = transport
        self._path = f"/v1/episodes/{episode['id']}/hold"
        self._changed = threading.Condition()
        self._latest: ReportedEpisode = episode
        self._failure: ArenadError | None = None
        self._is_closed = False
        self._events: ServerEvents | None = events or transport.stream(self._path)
        _HOLDS.add(self)
        threading.Thread(target=self._follow, name=f"hold {episode['id']}", daemon=True).start()

    @property
    def latest(self) -> ReportedEpisode:
        """The latest state that the daemon has told."""
        with self._changed:
            return self._latest

    def wait(self, is_reached: Callable[[ReportedEpisode], bool]) -> ReportedEpisode:
        """Waits for a state of the episode, or for its end. Raises the reason why no further state can be told."""
        with self._changed:
            while not (self._latest["ending"] or is_reached(self._latest)):
                if self._failure is not None:
                    raise self._failure
                self._changed.wait()
            return self._latest

    def told_end(self) -> EpisodeEnding | None:
        """Returns how the episode ended, if the daemon told it. Waits until all that a stopped daemon sent is read."""
        with self._changed:
            self._changed.wait_for(lambda: self._latest["ending"] or self._events is None, READ_WITHIN)
            return self._latest["ending"]

    def ends_within(self, seconds: float) -> EpisodeEnding | None:
        """Returns how the episode ended, if that is told within a time."""
        with self._changed:
            self._changed.wait_for(lambda: self._latest["ending"] or self._failure, seconds)
            return self._latest["ending"]

    def close(self) -> None:
        """Gives the episode up, which ends it."""
        with self._changed:
            self._is_closed = True
            events = self._events
        if events is not None:
            events.close()

    def forget(self) -> None:
        """Leaves the episode to the process that this one was forked from."""
        self._is_closed = True
        if self._events is not None:
            self._events.forget()

    def _follow(self) -> None:
        events = self._events
        while events is not None:
            for name, data in events:
                if name == "episode" and self._tell(data):
                    return
            with self._changed:
                self._events = None
                self._changed.notify_all()
            try:
                events = self._again()
            except ArenadError as error:
                self._fail(error)
                return
        self._fail(ArenadError("the client gave the episode up", code="ended"))

    def _tell(self, state: ReportedEpisode) -> bool:
        """Keeps a state, and returns whether it is the last one."""
        with self._changed:
            self._latest = state
            self._changed.notify_all()
        return state["ending"] is not None

    def _fail(self, error: ArenadError) -> None:
        with self._changed:
            if isinstance(error, EpisodeEnded):
                ended = self._latest.copy()
                ended["state"], ended["ending"] = error.ending["state"], error.ending
                self._latest = ended
            self._failure = error
            self._changed.notify_all()

    def _again(self) -> ServerEvents | None:
        """Holds the episode again; `None` if it was given up."""
        deadline = time.monotonic() + HOLD_AGAIN_WITHIN
        while True:
            with self._changed:
                if self._is_closed:
                    return None
            try:
                events = self._transport.stream(self._path)
            except ArenadError as error:
                # Until the daemon has noticed the end of the earlier connection, it says that the episode is held.
                is_passing = isinstance(error, Unreachable) or error.code in ("already_held", "stopping")
                if not is_passing or time.monotonic() >= deadline:
                    raise
                time.sleep(PAUSE)
                continue
            with self._changed:
                if not self._is_closed:
                    self._events = events
                    return events
            events.close()


_HOLDS: weakref.WeakSet[Hold] = weakref.WeakSet()


def _forget_all() -> None:
    # A forked process has copies of all connections, and would keep the episodes of a parent that was killed alive.
    for hold in list(_HOLDS):
        hold.forget()


os.register_at_fork(after_in_child=_forget_all)
