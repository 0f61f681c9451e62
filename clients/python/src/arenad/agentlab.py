"""AgentLab with an episode for each task: `make_study` makes a study all of whose tasks may run at the same time.

    from arenad.agentlab import make_study

    study = make_study(agent_args, "webarena")          # or native_benchmark("mini")
    study.run(n_jobs=8, parallel_backend="ray")

Each worker process takes an episode when it resets its environment, with pristine sites that no other task sees. So no
task depends on another one, and nothing is reset between tasks, agents and attempts.

If the environment fails an episode, its task ends with the error `EpisodeVoid`, and AgentLab repeats it in its next
attempt. AgentLab's own summary counts an error that remains as a reward of 0; `rewards` does not.
"""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import bgym
import gymnasium as gym
from agentlab.experiments.loop import EnvArgs, ExpResult
from agentlab.experiments.study import make_study as make_agentlab_study

from . import browsergym as episodes
from ._client import Arena
from .types import Recording

_NATIVE = "arenad."


@dataclass
class ArenadEnvArgs(EnvArgs):  # type: ignore[misc]
    """The arguments of an environment of AgentLab that runs in an episode. Workers get them pickled, so they contain no
    token: set ARENAD_TOKEN for a daemon on TCP."""

    sites: list[str] | None = None
    """The sites of the episode; all by default. A native task has its own."""
    environment: str | None = None
    """The environment, needed only if several that are up have the sites or the task."""
    host: str | None = None
    """The daemon's address; by default that of the command line."""
    timeout: float = 3600.0
    """The seconds that a task waits for its sites."""
    owner: str | None = None
    """The owner that the episodes are counted for."""
    labels: dict[str, str] | None = None
    """Labels of the episodes, in addition to `task` and `study`."""
    record: Recording | None = None
    """The requests that are recorded."""
    browser: dict[str, Any] | None = None
    """Arguments of Playwright's `launch`, such as `executable_path`."""

    def make_env(
        self,
        action_mapping: Any,
        exp_dir: Any,
        exp_task_kwargs: dict[str, Any] = {},  # noqa: B006  (the signature is AgentLab's)
        use_raw_page_output: bool = True,
    ) -> gym.Env[Any, Any]:
        """Makes the environment, each of whose resets starts an episode in this process."""
        if self.task_name.startswith(_NATIVE):
            episodes.register(self.task_name.removeprefix(_NATIVE))
        env = super().make_env(action_mapping, exp_dir, exp_task_kwargs, use_raw_page_output)
        if self.browser:
            env.unwrapped.pw_chromium_kwargs = {**env.unwrapped.pw_chromium_kwargs, **self.browser}
        return episodes.with_episodes(
            env,
            client=Arena(self.host, environment=self.environment),
            sites=self.sites or (),
            timeout=self.timeout,
            owner=self.owner,
            labels=self._labels(exp_dir),
            record=self.record,
        )

    def _labels(self, exp_dir: Any) -> dict[str, str]:
        # The folder of an experiment is in that of its study.
        study = Path(exp_dir).parent.name if exp_dir is not None else ""
        found = {"task": self.task_name, "study": study, **(self.labels or {})}
        if self.task_name.startswith(_NATIVE):
            # The daemon sets this label itself.
            del found["task"]
        return {name: value for name, value in found.items() if value}


def make_study(
    agent_args: Any,
    benchmark: bgym.Benchmark | str,
    *,
    client: Arena | None = None,
    sites: Iterable[str] | None = None,
    environment: str | None = None,
    host: str | None = None,
    timeout: float = 3600.0,
    owner: str | None = None,
    labels: dict[str, str] | None = None,
    record: Recording | None = None,
    browser: dict[str, Any] | None = None,
    **kwargs: Any,
) -> Any:
    """Makes a study of AgentLab whose tasks run in episodes, with `kwargs` of AgentLab's own `make_study`.

    Without `sites`, each task gets those that the metadata of the benchmark names for it, and the sites that tasks may
    look at besides (`wikipedia`, `map`, `homepage`), as far as they are up.
    """
    if isinstance(benchmark, str):
        benchmark = bgym.DEFAULT_BENCHMARKS[benchmark.lower()]()
    up = {site["name"] for site in (client or Arena(host)).sites(environment=environment)}
    known = _sites_by_task(benchmark)

    def converted(args: Any) -> ArenadEnvArgs:
        if isinstance(args, ArenadEnvArgs):
            return args
        wanted = list(sites) if sites is not None else _available(known.get(args.task_name), up)
        given = {field.name: getattr(args, field.name) for field in fields(args)}
        return ArenadEnvArgs(
            **given,
            sites=wanted,
            environment=environment,
            host=host,
            timeout=timeout,
            owner=owner,
            labels=labels,
            record=record,
            browser=browser,
        )

    mine = copy.copy(benchmark)
    mine.env_args_list = [converted(args) for args in benchmark.env_args_list]
    # Their preparation resets the sites of all clients, which episodes need and permit least of all.
    mine.backends = []
    return make_agentlab_study(agent_args, mine, **{"ignore_dependencies": True, **kwargs})


def native_benchmark(
    environment: str | None = None,
    *,
    tasks: Iterable[str] | None = None,
    client: Arena | None = None,
    max_steps: int = 30,
    headless: bool = True,
    **arguments: Any,
) -> bgym.Benchmark:
    """Returns the native tasks of an environment as a benchmark, or only those whose names begin with one of `tasks`.

    `arguments` are fields of `ArenadEnvArgs`. The program `arenad` lists the tasks (`ARENAD_BIN`, `ARENAD_ROOT`).
    """
    client = client or Arena()
    chosen = tuple(tasks) if tasks is not None else ("",)
    up = {site["name"] for site in client.sites(environment=environment)}
    listed = [task for task in client.tasks(environment=environment) if task["name"].startswith(chosen)]
    env_args = [
        ArenadEnvArgs(
            f"{_NATIVE}{task['name']}", max_steps=max_steps, headless=headless, environment=environment, **arguments
        )
        for task in listed
        if up.issuperset(task["sites"])
    ]
    if not env_args:
        raise ValueError(f"no native task of {environment or 'the environment'} has this name and sites that are up")
    actions = bgym.HighLevelActionSetArgs(
        subsets=("chat", "infeas", "nav", "tab", "bid"), multiaction=False, strict=False, retry_with_force=True
    )
    return bgym.Benchmark(
        name=f"arenad_{environment or 'tasks'}",
        high_level_action_set_args=actions,
        is_multi_tab=True,
        supports_parallel_seeds=True,
        env_args_list=env_args,
        backends=[],
        task_metadata=None,
    )


def rewards(study: str | os.PathLike[str]) -> dict[str, list[float | None]]:
    """Returns the rewards in the folder of a study by task; `None` stands for an episode that was void or undecided, or
    ended with another error. Attempts that AgentLab has repeated are left out."""
    found: dict[str, list[float | None]] = {}
    for file in sorted(Path(study).glob("**/summary_info.json")):
        folder = file.parent
        if folder.name.startswith("_"):
            # AgentLab renames the folder of an attempt that it repeats.
            continue
        told = json.loads(file.read_text(encoding="utf-8"))
        task = ExpResult(folder).exp_args.env_args.task_name
        found.setdefault(task, []).append(None if told["err_msg"] else float(told["cum_reward"]))
    return found


def _sites_by_task(benchmark: bgym.Benchmark) -> dict[str, list[str]]:
    """Returns the sites of each task by the metadata of its benchmark."""
    metadata = benchmark.task_metadata
    if metadata is None or "sites" not in metadata.columns:
        return {}
    pairs = zip(metadata["task_name"], metadata["sites"])
    return {str(task): [site for site in re.split(r"[\s,]+", str(sites)) if site] for task, sites in pairs}


def _available(named: list[str] | None, up: set[str]) -> list[str] | None:
    if named is None:
        return None
    return sorted((set(named) | {"wikipedia", "map", "homepage"}) & up) or None
