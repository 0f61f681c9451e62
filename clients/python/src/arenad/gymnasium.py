"""Gymnasium: an environment whose agent drives the daemon's browser in WebArena's notation.

    import gymnasium as gym
    import arenad.gymnasium

    env = gym.make("arenad/Task-v0", task="shopping.order.1")
    observation, info = env.reset()
    observation, reward, terminated, truncated, info = env.step("click [12]")

Each `reset` starts an episode with pristine sites. The task ends with `stop [answer]`, and arenad judges the answer, the
last page and the sites. A void episode raises `EpisodeVoid` and an episode without a verdict `Undecided`: neither of them
has a reward, and least of all one of 0.

`register` registers tasks under ids of their own, such as `arenad/shopping.order.1`.
"""

from __future__ import annotations

import base64
import contextlib
import io
import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from ._client import Arena
from ._episode import Episode
from ._errors import ArenadError, EpisodeEnded, EpisodeVoid, decided
from .types import BrowserStep, Recording

ATTEMPTS = 3
"""The number of episodes that one `reset` starts if the environment fails them before the agent acts."""

TEXT_MAX = 4 << 20
"""The maximum length of the text of an observation."""

ACTION_MAX = 1 << 16
"""The maximum length of an action."""

LETTERS = frozenset(chr(code) for code in range(32, 0x2200)) | frozenset("\t\n\r")
"""The letters from which actions are sampled, and of which most observations consist."""


class PageText(spaces.Text):
    """Texts of any characters up to a length. Gymnasium's own space enumerates the characters of its texts."""

    def __init__(self, max_length: int) -> None:
        super().__init__(max_length=max_length, min_length=0, charset=LETTERS)

    def contains(self, x: Any) -> bool:
        """Returns whether a value is a text that is not too long."""
        return isinstance(x, str) and len(x) <= self.max_length

    def sample(self, *given: Any, **options: Any) -> str:
        """Returns a random action that is short and mostly has no effect."""
        number = int(self.np_random.integers(0, 40))
        kinds = ("scroll [down]", "scroll [up]", "go_back", f"hover [{number}]", f"click [{number}]")
        return kinds[int(self.np_random.integers(0, len(kinds)))]

    def __repr__(self) -> str:
        return f"PageText({self.max_length})"


class ArenaEnv(gym.Env[dict[str, Any], str]):
    """A native task with the daemon's browser.

    Observations have the keys `goal`, `url` and `text`, `error` with the reason why the last action failed, and with
    `screenshot=True` or `observation="set_of_marks"` the pixels of the viewport. Actions are texts such as
    `type [7] [lamp] [1]`; `stop [answer]` ends the task. After `max_steps` actions the episode is truncated, and judged all
    the same. `files` are those that the agent can upload, by name.

    `task` can be given to `reset` as well: `env.reset(options={"task": "turkle.left.2"})`. `on_void="truncate"` is for
    vectors of environments, which an exception would end: `step` then truncates a void episode, with the reward NaN and
    the reason in `info["void"]`. The other arguments are those of `Client.episode`.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "ansi"], "render_fps": 1}

    def __init__(
        self,
        task: str | None = None,
        *,
        client: Arena | None = None,
        environment: str | None = None,
        observation: Literal["accessibility_tree", "html", "set_of_marks", "none"] = "accessibility_tree",
        current_viewport_only: bool = True,
        screenshot: bool = False,
        viewport: tuple[int, int] = (1280, 720),
        files: Mapping[str, bytes] | None = None,
        max_steps: int = 30,
        snapshots: Mapping[str, str] | None = None,
        slots: Mapping[str, int] | None = None,
        timeout: float = 3600.0,
        owner: str | None = None,
        labels: Mapping[str, str] | None = None,
        record: Recording | None = None,
        on_void: Literal["raise", "truncate"] = "raise",
        render_mode: str | None = None,
    ) -> None:
        self._on_void = on_void
        self.render_mode = render_mode
        self._task = task
        self._client = client or Arena(environment=environment)
        self._arguments: dict[str, Any] = {"timeout": timeout, "owner": owner, "labels": labels, "record": record}
        self._arguments |= {"environment": environment, "snapshots": snapshots, "slots": slots}
        self._max_steps = max_steps
        has_screenshot = self._has_screenshot = screenshot or observation == "set_of_marks"
        self._browser: dict[str, Any] = {
            "viewport": viewport,
            "observation": observation,
            "current_viewport_only": current_viewport_only,
            "screenshot": has_screenshot or render_mode == "rgb_array",
            "files": dict(files or {}),
        }
        self._episode: Episode | None = None
        self._step: BrowserStep | None = None
        self._goal = ""
        self._is_over = True
        width, height = viewport
        parts: dict[str, spaces.Space[Any]] = {
            "goal": PageText(TEXT_MAX),
            "url": PageText(TEXT_MAX),
            "text": PageText(TEXT_MAX),
            "error": PageText(TEXT_MAX),
        }
        if has_screenshot:
            parts["screenshot"] = spaces.Box(0, 255, (height, width, 3), np.uint8)
        self.observation_space = spaces.Dict(parts)
        self.action_space = PageText(ACTION_MAX)

    @property
    def episode(self) -> Episode:
        """The episode that runs. Raises `RuntimeError` before the first `reset` and after `close`."""
        if self._episode is None:
            raise RuntimeError("no episode runs: call reset() first")
        return self._episode

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts an episode, and opens the start page of its task in a browser that is signed in.

        `options["task"]` names the task. `info["arenad"]` has the episode's id, slots and URLs. The seed is that of
        `np_random` alone: the sites are the same with every seed.
        """
        super().reset(seed=seed)
        chosen = dict(options or {})
        self._task = chosen.pop("task", self._task)
        if self._task is None:
            raise ValueError('name a task: ArenaEnv("turkle.left.1"), or reset(options={"task": "turkle.left.1"})')
        if chosen:
            raise ValueError(f"unknown options: {', '.join(sorted(chosen))}; there is only task")
        for attempt in range(1, ATTEMPTS + 1):
            self._release()
            try:
                return self._reset(self._task)
            except EpisodeVoid:
                self._release()
                if attempt == ATTEMPTS:
                    raise
            except BaseException:
                self._release()
                raise
        raise AssertionError("the last attempt returns or raises")

    def _reset(self, task: str) -> tuple[dict[str, Any], dict[str, Any]]:
        episode = self._episode = self._client.episode(task=task, **self._arguments)
        begun = episode.begin()
        self._goal = begun["intent"]
        start = begun["start"]
        step = episode.open_browser(start, accounts=dict(begun["accounts"]), **self._browser)
        if step["error"] is not None:
            detail = f"the start page {start} cannot be opened: {step['error']['message']}"
            raise ArenadError(detail, code="no_start_page", hint=step["error"]["hint"])
        self._step, self._is_over = step, False
        told = {"episode": episode.id, "environment": episode.environment, "task": task, "urls": episode.urls}
        slots = {site["site"]: site["slot"] for site in episode.sites}
        return self._observed(step), {"arenad": {**told, "slots": slots}, **_told(step)}

    def step(self, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Performs an action. The reward is that of the verdict when the task ends, and 0 before.

        An action that fails is no exception: `observation["error"]` has the reason.
        """
        if self._is_over or self._step is None:
            raise gym.error.ResetNeeded("the task has ended, or has not begun: call reset()")
        try:
            return self._stepped(self.episode, action)
        except EpisodeVoid as void:
            self._is_over = True
            if self._on_void == "raise":
                raise
            return self._observed(self._step), math.nan, False, True, {**_told(self._step), "void": void.reason}

    def _stepped(self, episode: Episode, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        step = self._step = episode.act(action)
        terminated = step["done"]
        truncated = not terminated and step["step"] >= self._max_steps
        info, reward = _told(step), 0.0
        if terminated or truncated:
            self._is_over = True
            evaluation = episode.evaluate(answer=step["answer"] or "", url=step["url"])
            info |= {"verdict": evaluation["verdict"], "evaluation": evaluation}
            reward = decided(evaluation)
        return self._observed(step), reward, terminated, truncated, info

    def render(self) -> Any:
        """Returns the pixels of the viewport with the mode `rgb_array`, and the text of the observation with `ansi`."""
        if self._step is None or self.render_mode is None:
            return None
        return self._step["observation"]["text"] if self.render_mode == "ansi" else _pixels(self._step)

    def close(self) -> None:
        """Gives the sites back."""
        self._release()

    def _observed(self, step: BrowserStep) -> dict[str, Any]:
        error = step["error"]
        found: dict[str, Any] = {
            "goal": self._goal,
            "url": step["url"],
            "text": step["observation"]["text"],
            "error": "" if error is None else error["message"],
        }
        if self._has_screenshot:
            found["screenshot"] = _pixels(step)
        return found

    def _release(self) -> None:
        episode, self._episode = self._episode, None
        self._step, self._is_over = None, True
        if episode is not None:
            with contextlib.suppress(EpisodeEnded):
                episode.end()


def register(tasks: Iterable[str], **kwargs: Any) -> None:
    """Registers native tasks as `arenad/TASK` for `gym.make` and `gym.make_vec`; `kwargs` are those of `ArenaEnv`."""
    for task in tasks:
        if f"arenad/{task}" not in gym.registry:
            gym.register(
                f"arenad/{task}",
                entry_point="arenad.gymnasium:ArenaEnv",
                kwargs={"task": task, **kwargs},
                nondeterministic=True,
                disable_env_checker=True,
            )


def register_all(environment: str = "mini", *, client: Arena | None = None, **kwargs: Any) -> list[str]:
    """Registers all native tasks of an environment, and returns their ids."""
    names = [task["name"] for task in (client or Arena()).tasks(environment=environment)]
    register(names, environment=environment, **kwargs)
    return [f"arenad/{name}" for name in names]


def _told(step: BrowserStep) -> dict[str, Any]:
    return {"tabs": step["tabs"], "step": step["step"]}


def _pixels(step: BrowserStep) -> np.ndarray[Any, np.dtype[np.uint8]]:
    from PIL import Image

    screenshot = step["observation"]["screenshot"]
    if screenshot is None:
        raise RuntimeError('no screenshot was taken: make the environment with screenshot=True or render_mode="rgb_array"')
    pixels: np.ndarray[Any, np.dtype[np.uint8]] = np.asarray(Image.open(io.BytesIO(base64.b64decode(screenshot))).convert("RGB"))
    return pixels


# Chromium numbers the elements of a page differently from run to run.
gym.register(
    "arenad/Task-v0", entry_point="arenad.gymnasium:ArenaEnv", nondeterministic=True, disable_env_checker=True
)
