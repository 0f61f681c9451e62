"""Inspect AI with an episode for each sample.

The sandbox `arenad` starts an episode in `sample_init`, gives the sandbox of another kind its variables, and ends the
episode in `sample_cleanup`. The scorer `judged` lets arenad judge native tasks:

    from inspect_ai import Task, eval
    from inspect_ai.agent import react
    from arenad.inspect_ai import ArenadSandboxConfig, judged, samples

    task = Task(
        dataset=samples("mini", tasks=["turkle."]),
        solver=react(),
        scorer=judged(),
        sandbox=("arenad", ArenadSandboxConfig(environment="mini")),
    )
    eval(task, model="openai/…", retry_on_error=2)

A void episode raises `EpisodeVoid` in the scorer, so that the sample is an error without a score, which `retry_on_error`
repeats. An episode without a verdict is unscored.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any, cast

from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer, stderr
from inspect_ai.solver import TaskState
from inspect_ai.util import ExecResult, SandboxConnection, SandboxEnvironment, sandbox, sandboxenv
from inspect_ai.util._sandbox.registry import registry_find_sandboxenv
from pydantic import BaseModel

from . import _sandbox
from ._client import Arena
from ._episode import Episode
from ._errors import EpisodeEnded
from .types import Begun, Recording

TASK = "arenad_task"
"""The key of a sample's metadata with the native task of its episode."""

SITES = "arenad_sites"
"""The key of a sample's metadata with the sites of its episode."""


class ArenadSandboxConfig(BaseModel):  # type: ignore[misc]
    """The configuration of the sandbox `arenad`.

    The metadata `arenad_task` and `arenad_sites` of a sample take precedence over `task` and `sites`. `sandbox` and
    `config` are the kind and the configuration file of the sandbox in which tools run. `proxy_host` is the name of the
    daemon's machine in that sandbox, and needed only if it differs. The other fields are those of `Client.episode`.
    """

    model_config = {"frozen": True}

    sites: tuple[str, ...] = ()
    task: str | None = None
    environment: str | None = None
    timeout: float = 3600.0
    owner: str | None = None
    record: Recording | None = None
    sandbox: str = "local"
    config: str | None = None
    proxy_host: str | None = None
    proxy_env: bool = True


@sandboxenv(name="arenad")
class ArenadSandbox(SandboxEnvironment):  # type: ignore[misc]
    """A sandbox of another kind whose programs have the variables of an episode, among them `http_proxy`."""

    def __init__(self, inner: Any, episode: Episode, begun: Begun | None, variables: dict[str, str]) -> None:
        super().__init__()
        self.inner = inner
        self.episode = episode
        self.begun = begun
        self.variables = variables

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> ArenadSandboxConfig:
        """Reads the configuration from a log."""
        return ArenadSandboxConfig(**config)

    @classmethod
    async def task_init(cls, task_name: str, config: Any) -> None:
        """Prepares the inner sandboxes, for example their images."""
        wanted = _config(config)
        await _inner(wanted).task_init(task_name, wanted.config)

    @classmethod
    async def sample_init(cls, task_name: str, config: Any, metadata: dict[str, Any]) -> dict[str, SandboxEnvironment]:
        """Starts the episode of a sample, and then its sandboxes. Raises `NoSlot` if no slot comes free in time."""
        wanted = _config(config)
        task = metadata.get(TASK) or wanted.task
        sites = metadata.get(SITES) or wanted.sites
        asked = _sandbox.request(
            Arena(),
            sites=(sites,) if isinstance(sites, str) else tuple(sites),
            task=task,
            timeout=wanted.timeout,
            owner=wanted.owner,
            labels={"eval": _label(task_name)},
            record=wanted.record,
            environment=wanted.environment,
        )
        episode = await _sandbox.started(asked)
        try:
            begun = await _sandbox.done(episode.begin) if task else None
            given = _sandbox.variables(episode, wanted.proxy_host, wanted.sandbox != "local", wanted.proxy_env)
            if begun is not None:
                given["ARENAD_START"] = begun["start"]
            made = await _inner(wanted).sample_init(task_name, wanted.config, metadata)
        except BaseException:
            _sandbox.behind(episode._release_quietly)
            raise
        return {name: cls(inner, episode, begun, given) for name, inner in made.items()}

    @classmethod
    async def sample_cleanup(
        cls, task_name: str, config: Any, environments: dict[str, SandboxEnvironment], interrupted: bool
    ) -> None:
        """Ends the sandboxes and the episode."""
        wanted = _config(config)
        own = [cast(ArenadSandbox, each) for each in environments.values()]
        inner = {name: cast(ArenadSandbox, each).inner for name, each in environments.items()}
        try:
            await _inner(wanted).sample_cleanup(task_name, wanted.config, inner, interrupted)
        finally:
            with contextlib.suppress(EpisodeEnded):
                await _sandbox.done(own[0].episode.end)

    @classmethod
    async def task_cleanup(cls, task_name: str, config: Any, cleanup: bool) -> None:
        """Removes what the inner sandboxes have left."""
        wanted = _config(config)
        await _inner(wanted).task_cleanup(task_name, wanted.config, cleanup)

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """Runs a command with the variables of the episode."""
        given = {**self.variables, **(env or {})}
        return await self.inner.exec(cmd, input, cwd, given, user, timeout, timeout_retry, concurrency)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Writes a file in the inner sandbox."""
        await self.inner.write_file(file, contents)

    async def read_file(self, file: str, text: bool = True) -> Any:
        """Reads a file of the inner sandbox."""
        return await self.inner.read_file(file, text)

    async def connection(self, *, user: str | None = None) -> SandboxConnection:
        """Tells how to log in to the inner sandbox."""
        return await self.inner.connection(user=user)


def episode(name: str | None = None) -> Episode:
    """Returns the episode of the running sample, for solvers, tools and scorers. Its methods block: call them in a
    thread."""
    return _own(name).episode


def begun(name: str | None = None) -> Begun:
    """Returns the beginning of the sample's native task: its start page and its accounts."""
    found = _own(name).begun
    if found is None:
        raise RuntimeError("the sample has no native task: set the metadata `arenad_task`")
    return found


def samples(environment: str | None = None, *, tasks: Iterable[str] = (), client: Arena | None = None) -> list[Sample]:
    """Returns a sample for each native task of an environment whose name begins with one of `tasks`; by default all."""
    chosen = tuple(tasks)
    return [
        Sample(id=task["name"], input=task["intent"], target="", metadata={TASK: task["name"], "sites": task["sites"]})
        for task in (client or Arena()).tasks(environment=environment)
        if not chosen or task["name"].startswith(chosen)
    ]


@scorer(metrics=[accuracy(), stderr()])  # type: ignore[misc]
def judged(url: str = "url") -> Scorer:
    """Scores a native task by arenad's verdict on the model's last output and on the sites.

    `url` is the key of the sample's store under which a solver leaves the address of its last page. Raises `EpisodeVoid`
    if the environment failed the episode.
    """

    async def score(state: TaskState, target: Target) -> Score:
        answer, page = state.output.completion, state.store.get(url)
        running = episode()
        evaluation = await _sandbox.done(lambda: running.evaluate(answer=answer, url=page))
        told = {"episode": running.id, "verdict": evaluation["verdict"], "evaluation": evaluation}
        if evaluation["reward"] is None:
            return Score.unscored(reason=evaluation["verdict"], answer=answer, metadata=told)
        return Score(value=evaluation["reward"], answer=answer, explanation=evaluation["verdict"], metadata=told)

    return score


def _own(name: str | None) -> ArenadSandbox:
    return cast(ArenadSandbox, sandbox(name).as_type(ArenadSandbox))


def _config(config: Any) -> ArenadSandboxConfig:
    if config is None:
        return ArenadSandboxConfig()
    if not isinstance(config, ArenadSandboxConfig):
        raise TypeError(f"the sandbox arenad takes an ArenadSandboxConfig, not {config!r}")
    return config


def _inner(config: ArenadSandboxConfig) -> Any:
    """Returns the class of the inner sandboxes."""
    return registry_find_sandboxenv(config.sandbox)


def _label(name: str) -> str:
    """Returns the name of an evaluation as the value of a label, which has at most 63 characters."""
    return name[-63:]
