"""Trials of Harbor with an episode each, and an agent without a model."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from arenad import Client
from arenad.harbor import ANSWER_FILE, EpisodeMixin, write_task
from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities
from harbor.models.environment_type import EnvironmentType
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig, VerifierConfig
from harbor.models.trial.result import TrialResult
from harbor.trial.trial import Trial
from tools import ANSWERS, FETCH, assert_fetched, base_image, kill_containers, needs_compose


class HostEnvironment(BaseEnvironment):
    """Runs commands on this machine, in a folder in place of `/`."""

    @staticmethod
    def type() -> str:
        return EnvironmentType.DOCKER

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities()

    def _validate_definition(self) -> None:
        pass

    @property
    def _root(self) -> Path:
        return Path(self.trial_paths.trial_dir) / "root"

    async def start(self, force_build: bool) -> None:
        (self._root / "logs/agent").mkdir(parents=True)

    async def stop(self, delete: bool) -> None:
        shutil.rmtree(self._root, ignore_errors=True)

    async def upload_file(self, source_path: Any, target_path: str) -> None:
        target = self._root / target_path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source_path, target)

    async def upload_dir(self, source_dir: Any, target_dir: str) -> None:
        shutil.copytree(source_dir, self._root / target_dir.lstrip("/"), dirs_exist_ok=True)

    async def download_file(self, source_path: str, target_path: Any) -> None:
        shutil.copy(self._root / source_path.lstrip("/"), target_path)

    async def download_dir(self, source_dir: str, target_dir: Any) -> None:
        shutil.copytree(self._root / source_dir.lstrip("/"), target_dir, dirs_exist_ok=True)

    async def exec(self, command: str, cwd=None, env=None, timeout_sec=None, user=None, **_: Any) -> ExecResult:
        given = {**os.environ, **self._persistent_env, **(env or {})}
        words = ["bash", "-c", command.replace("/logs/", f"{self._root}/logs/")]
        process = await asyncio.create_subprocess_exec(*words, env=given, stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
        return ExecResult(stdout=out.decode(), return_code=process.returncode or 0)


class HostEpisodes(EpisodeMixin, HostEnvironment):
    """The same with an episode."""

    def _is_container(self) -> bool:
        return False


class ScriptedAgent(BaseAgent):
    """Fetches the start page in the environment, and gives the answer that was written down for its task."""

    def __init__(self, *args: Any, kills: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._kills = kills

    @staticmethod
    def name() -> str:
        return "scripted"

    def version(self) -> str:
        return "1"

    async def setup(self, environment: BaseEnvironment) -> None:
        pass

    async def run(self, instruction: str, environment: Any, context: Any) -> None:
        # A shell of /bin/sh has no /dev/tcp.
        fetched = await environment.exec(f"bash -c {shlex.quote(FETCH)}")
        lines = (fetched.stdout or "").strip().splitlines()
        assert fetched.return_code == 0 and lines, fetched
        assert_fetched(lines[-1], environment.episode)
        task = environment.task_env_config.env["ARENAD_TASK"]
        await environment.exec(f"mkdir -p /logs/agent && echo {ANSWERS[task]} >{ANSWER_FILE}")
        if self._kills:
            await asyncio.to_thread(kill_containers, Client(environment="mini"), environment.episode)


HOST = "test_harbor:HostEpisodes"
DOCKER = "arenad.harbor:ArenadEnvironment"


def trial(folder: Path, client: Client, task: str, environment: str, *, kills: bool = False) -> TrialResult:
    (wanted,) = [known for known in client.tasks(environment="mini") if known["name"] == task]
    path = write_task(folder / "tasks", wanted, image=base_image())
    config = TrialConfig(
        task=TaskConfig(path=path),
        trials_dir=folder / "trials",
        agent=AgentConfig(import_path="test_harbor:ScriptedAgent", kwargs={"kills": kills}),
        environment=EnvironmentConfig(import_path=environment, kwargs={"arena_environment": "mini", "proxy_host": "127.0.0.1"}),
        verifier=VerifierConfig(import_path="arenad.harbor:ArenadVerifier"),
    )

    async def run() -> TrialResult:
        return await (await Trial.create(config)).run()

    return asyncio.run(run())


@pytest.mark.parametrize("environment", [HOST, pytest.param(DOCKER, marks=needs_compose)])
@pytest.mark.parametrize(("task", "reward"), [("turkle.left.1", 1.0), ("turkle.finished", 0.0)])
def test_a_trial_has_an_episode_and_the_reward_of_its_verdict(client: Client, tmp_path, environment, task, reward):
    known = {episode["id"] for episode in client.episodes()}
    result = trial(tmp_path, client, task, environment)
    assert result.exception_info is None, result.exception_info
    assert result.verifier_result.rewards == {"reward": reward}
    (ended,) = [episode for episode in client.episodes() if episode["id"] not in known]
    assert ended["state"] == "released" and ended["labels"]["task"] == task
    (evaluation,) = tmp_path.glob("trials/*/verifier/evaluation.json")
    assert json.loads(evaluation.read_text())["episode"] == ended["id"]


def test_a_void_episode_is_an_exception_without_a_reward(client: Client, tmp_path):
    result = trial(tmp_path, client, "turkle.left.1", HOST, kills=True)
    assert result.exception_info.exception_type == "EpisodeVoid"
    assert result.verifier_result is None


def test_options_are_checked(tmp_path):
    from harbor.environments.factory import EnvironmentFactory

    wrong = EnvironmentConfig(import_path=DOCKER, kwargs={"slots": 3})
    with pytest.raises(ValueError, match="Unknown option 'slots'"):
        EnvironmentFactory.validate_options(wrong)
    EnvironmentFactory.validate_options(EnvironmentConfig(import_path=DOCKER, kwargs={"sites": "turkle", "keep_containers": True}))
