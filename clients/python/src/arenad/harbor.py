"""Harbor with an episode for each trial, and arenad's verdict as the reward.

The environment is Harbor's own Docker environment, whose containers have the variables of an episode from `start` to
`stop`; the verifier lets arenad judge the native task that the episode was started with:

    harbor run --path tasks --agent … \\
        --environment-import-path arenad.harbor:ArenadEnvironment \\
        --verifier-import-path arenad.harbor:ArenadVerifier

`write_task` writes native tasks as tasks of Harbor. A void episode raises `EpisodeVoid` in the verifier, so that the trial
has an exception and no reward.
"""

from __future__ import annotations

import contextlib
import json
import shlex
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment
from harbor.environments.docker.docker import DockerEnvironment, DockerOptions
from harbor.environments.options import EnvironmentOptions
from harbor.models.verifier.result import VerifierResult
from harbor.verifier.base import BaseVerifier

from . import _sandbox
from ._client import Arena
from ._episode import Episode
from ._errors import EpisodeEnded, decided
from .types import Recording, Task

ANSWER_FILE = "/logs/agent/answer.txt"
"""The file in the environment with the agent's answer."""

URL_FILE = "/logs/agent/url.txt"
"""The file in the environment with the address of the agent's last page."""


class EpisodeOptions(EnvironmentOptions):  # type: ignore[misc]
    """The options of an environment with episodes, passed by `--ek NAME=VALUE`.

    `ARENAD_TASK` and `ARENAD_SITES` in the `[environment.env]` of a task take precedence over `task` and `sites`, which
    are separated by commas. `timeout` must be shorter than Harbor's time limit for the start of an environment.
    `proxy_host` is the name of the daemon's machine in the containers, and needed only if it differs. The others are those
    of `Client.episode`.
    """

    sites: str = ""
    task: str | None = None
    arena_environment: str | None = None
    timeout: float = 540.0
    owner: str | None = None
    record: Recording | None = None
    proxy_host: str | None = None
    proxy_env: bool = True


class EpisodeMixin(BaseEnvironment):  # type: ignore[misc]
    """An environment whose programs have the variables of an episode. Put it before a class of environments of Harbor."""

    options_model = EpisodeOptions

    episode: Episode | None = None
    """The episode from `start` to `stop`."""

    _persistent_env: dict[str, str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._own_variables = dict(self._persistent_env)

    async def start(self, force_build: bool) -> None:
        """Starts the episode, captures what its task compares with, and starts the environment."""
        await self._end()
        options, given = self.options, self.task_env_config.env
        sites = given.get("ARENAD_SITES", options.sites)
        task = given.get("ARENAD_TASK") or options.task
        asked = _sandbox.request(
            Arena(),
            sites=tuple(site.strip() for site in sites.split(",") if site.strip()),
            task=task,
            timeout=options.timeout,
            owner=options.owner,
            labels={"trial": self.session_id[-63:]},
            record=options.record,
            environment=options.arena_environment,
        )
        episode = self.episode = await _sandbox.started(asked)
        try:
            variables = _sandbox.variables(episode, options.proxy_host, self._is_container(), options.proxy_env)
            if task:
                variables["ARENAD_START"] = (await _sandbox.done(episode.begin))["start"]
            self._persistent_env = {**variables, **self._own_variables}
            await super().start(force_build)
        except BaseException:
            self.episode = None
            _sandbox.behind(episode._release_quietly)
            raise

    async def stop(self, delete: bool) -> None:
        """Stops the environment, and gives the sites back."""
        try:
            await super().stop(delete)
        finally:
            await self._end()

    def _is_container(self) -> bool:
        """Returns whether programs have a network other than that of this machine."""
        return True

    async def _end(self) -> None:
        episode, self.episode = self.episode, None
        if episode is not None:
            with contextlib.suppress(EpisodeEnded):
                await _sandbox.done(episode.end)


class ArenadOptions(EpisodeOptions, DockerOptions):  # type: ignore[misc]
    """The options of `EpisodeOptions`, and those of Harbor's Docker environment."""


class ArenadEnvironment(EpisodeMixin, DockerEnvironment):  # type: ignore[misc]
    """Harbor's Docker environment with an episode for each trial.

    Its containers reach the episode proxy by the network of the host, which the tasks of `write_task` have, and the option
    `proxy_host=127.0.0.1`.
    """

    options_model = ArenadOptions


class ArenadVerifier(BaseVerifier):  # type: ignore[misc]
    """Judges a native task by the agent's answer, its last page and the sites.

    The agent leaves its answer in `answer_file`, and may leave the address of its last page in `url_file`. The verifier
    must share the agent's environment, which is Harbor's default. Raises `EpisodeVoid` if the environment failed the
    episode, and `Undecided` without a verdict.
    """

    def __init__(self, *, answer_file: str = ANSWER_FILE, url_file: str = URL_FILE, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._answer_file = answer_file
        self._url_file = url_file

    async def verify(self) -> VerifierResult:
        """Returns the reward. The verdict with its evidence is in `verifier/evaluation.json` of the trial."""
        episode: Episode | None = getattr(self.environment, "episode", None)
        if episode is None:
            raise RuntimeError("the verifier needs the episode of the agent's environment: set environment_mode to shared")
        answer, url = await self._read(self._answer_file), await self._read(self._url_file)
        evaluation = await _sandbox.done(lambda: episode.evaluate(answer=answer, url=url or None))
        folder = Path(self.trial_paths.verifier_dir)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "evaluation.json").write_text(json.dumps(evaluation, indent=2), encoding="utf-8")
        return VerifierResult(rewards={"reward": decided(evaluation)})

    async def _read(self, file: str) -> str:
        """Returns the text of a file in the environment, or nothing if it does not exist."""
        read = await self.environment.exec(f"cat -- {shlex.quote(file)}")
        return (read.stdout or "").strip() if read.return_code == 0 else ""


def write_task(folder: str | Path, task: Task, *, image: str) -> Path:
    """Writes a native task, as `Client.tasks` returns it, as a task of Harbor in a new folder below `folder`.

    `image` is the image of the agent's container. Returns the folder of the task.
    """
    made = Path(folder) / task["name"]
    (made / "environment").mkdir(parents=True)
    (made / "tests").mkdir()
    lines = [
        'schema_version = "1.4"',
        "[environment]",
        f"docker_image = {json.dumps(image)}",
        "[environment.env]",
        f"ARENAD_TASK = {json.dumps(task['name'])}",
        f"ARENAD_SITES = {json.dumps(','.join(task['sites']))}",
    ]
    (made / "task.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    # The episode proxy listens on this machine alone.
    compose = {"services": {"main": {"network_mode": "host"}}}
    (made / "environment" / "docker-compose.yaml").write_text(json.dumps(compose) + "\n", encoding="utf-8")
    (made / "instruction.md").write_text(
        f"{task['intent']}\n\nThe variable ARENAD_START has the address at which you start. Send the requests of your "
        f"browser through the proxy in ARENAD_PROXY_URL.\nWrite your answer to {ANSWER_FILE}, and the address of the last "
        f"page to {URL_FILE}.\n",
        encoding="utf-8",
    )
    # Harbor insists on a script, which would run without the verifier of this module.
    script = '#!/bin/sh\necho "arenad judges this task: pass --verifier-import-path arenad.harbor:ArenadVerifier" >&2\nexit 1\n'
    (made / "tests" / "test.sh").write_text(script, encoding="utf-8")
    return made
