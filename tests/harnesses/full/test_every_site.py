"""A scripted agent does a task on each site of `mini`: through Gymnasium, and through the client of OpenEnv."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import gymnasium as gym
import pytest
from arenad import Client
from arenad.gymnasium import ArenaEnv
from mini import ROOT
from site_agent import TASKS, accomplish, give_up


class Gymnasium:
    """The environment of Gymnasium, with further arguments for its episodes."""

    def __init__(self, **arguments: Any) -> None:
        self._arguments = arguments
        self._env: ArenaEnv | None = None
        self.url = ""

    def reset(self, task: str) -> dict[str, Any]:
        self.close()
        self._env = gym.make("arenad/Task-v0", task=task, environment="mini", **self._arguments).unwrapped  # type: ignore[assignment]
        return self._seen(self._env.reset()[0])

    def step(self, action: str) -> tuple[dict[str, Any], float | None, bool]:
        observation, reward, terminated, _, _ = self._env.step(action)
        return self._seen(observation), reward, terminated

    def close(self) -> None:
        if self._env is not None:
            self._env.close()

    def _seen(self, observation: dict[str, Any]) -> dict[str, Any]:
        self.url = observation["url"]
        return observation


class Checked(Gymnasium):
    """The same on slot 1, where the reward is what `arenad check` says of the sites at their public ports."""

    def __init__(self, client: Client, site: str) -> None:
        super().__init__(slots={site: 1})
        self._client = client
        self._begun: Any = None

    def reset(self, task: str) -> dict[str, Any]:
        observation = super().reset(task)
        self._begun = self._client.begin(task, environment="mini")
        return observation

    def step(self, action: str) -> tuple[dict[str, Any], float | None, bool]:
        if action != "stop":
            return super().step(action)
        verdict = self._client.check(self._begun, url=self.url)["report"]["verdict"]
        return {}, {"passed": 1.0, "failed": 0.0}[verdict], True


@pytest.mark.parametrize("task", TASKS)
def test_gymnasium_rewards_what_arenad_check_accepts(client: Client, task: str):
    site = task.partition(".")[0]
    # Sites without slots are shared by all episodes, and have no slot 1.
    faces = [Gymnasium()] if site in ("wikipedia", "map") else [Gymnasium(), Checked(client, site)]
    for face in faces:
        try:
            assert accomplish(face, task) == 1.0, type(face)
            assert give_up(face, task) == 0.0, type(face)
        finally:
            face.close()


def test_the_client_of_openenv_gets_the_same_rewards(client: Client):
    python = subprocess.run(["scripts/harnesses.sh", "--openenv"], cwd=ROOT, capture_output=True, text=True, check=True)
    url = f"http://{os.environ['ARENAD_OPENENV']}"
    program = [python.stdout.strip(), str(ROOT / "tests/harnesses/site_agent.py"), url, *TASKS]
    done = subprocess.run(program, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {task: [1.0, 0.0] for task in TASKS}
