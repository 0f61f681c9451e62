"""Evaluations of Inspect AI with an episode for each sample, and solvers without a model."""

from __future__ import annotations

import asyncio
import math

import pytest
from arenad import Client
from arenad.inspect_ai import ArenadSandbox, ArenadSandboxConfig, begun, episode, judged, samples
from inspect_ai import Task, eval
from inspect_ai.log import EvalLog
from inspect_ai.model import ModelOutput
from inspect_ai.solver import Generate, TaskState, solver
from inspect_ai.util import sandbox
from tools import ANSWERS, FETCH, assert_fetched, base_image, kill_containers, needs_compose

CONFIG = ArenadSandboxConfig(environment="mini")


@solver
def scripted(then=None):
    """Fetches the start page in the sandbox, and gives the answer that was written down for its task."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        fetched = await sandbox().exec(["bash", "-c", FETCH])
        assert fetched.success, fetched.stderr
        assert_fetched(fetched.stdout, episode())
        assert begun()["task"] == state.sample_id
        await sandbox().write_file("kept.txt", "kept")
        assert await sandbox().read_file("kept.txt") == "kept"
        if then is not None:
            await asyncio.to_thread(then)
        state.output = ModelOutput.from_content("mockllm", ANSWERS[str(state.sample_id)])
        return state

    return solve


def run(tasks: list[str], client: Client, config: ArenadSandboxConfig = CONFIG, then=None, **given) -> EvalLog:
    chosen = [sample for sample in samples("mini", client=client) if sample.id in tasks]
    assert len(chosen) == len(tasks)
    task = Task(dataset=chosen, solver=scripted(then), scorer=judged(), sandbox=("arenad", config), name="scripted")
    (log,) = eval(task, model="mockllm/model", display="none", log_dir=given.pop("log_dir"), **given)
    return log


def values(log: EvalLog) -> dict[str, float]:
    return {str(sample.id): sample.scores["judged"].value for sample in log.samples or [] if sample.scores}


def test_each_sample_has_an_episode_and_the_reward_of_its_verdict(client: Client, tmp_path):
    log = run(list(ANSWERS), client, log_dir=str(tmp_path))
    assert log.status == "success", log.error
    assert values(log) == {"turkle.left.1": 1.0, "turkle.left.2": 1.0, "turkle.finished": 0.0}
    scores = [sample.scores["judged"] for sample in log.samples]
    ids = {score.metadata["episode"] for score in scores}
    assert len(ids) == 3
    assert {client.find_episode(id)["state"] for id in ids} == {"released"}


def test_a_void_episode_is_an_error_without_a_score(client: Client, tmp_path):
    log = run(["turkle.left.1"], client, then=lambda: kill_containers(client, episode()), log_dir=str(tmp_path))
    (sample,) = log.samples
    assert "EpisodeVoid" in sample.error.traceback and not sample.scores
    assert log.status == "error"


def test_a_void_episode_is_repeated(client: Client, tmp_path):
    attempts = []

    def once() -> None:
        attempts.append(episode().id)
        if len(attempts) == 1:
            kill_containers(client, episode())

    log = run(["turkle.left.1"], client, then=once, retry_on_error=1, log_dir=str(tmp_path))
    assert log.status == "success" and values(log) == {"turkle.left.1": 1.0}
    assert [client.find_episode(id)["state"] for id in attempts] == ["void", "released"]


def test_an_episode_without_a_verdict_is_unscored(client: Client, tmp_path, monkeypatch: pytest.MonkeyPatch):
    from arenad import Episode

    undecided = {"episode": "ep", "verdict": "needs_judge", "reward": None, "ending": None}
    monkeypatch.setattr(Episode, "evaluate", lambda self, **_: undecided)
    log = run(["turkle.left.1"], client, log_dir=str(tmp_path))
    (sample,) = log.samples
    assert math.isnan(sample.scores["judged"].value)
    assert sample.scores["judged"].reason == "needs_judge"


def test_the_configuration_is_read_from_a_log(client: Client, tmp_path):
    log = run(["turkle.left.1"], client, log_dir=str(tmp_path))
    config = log.eval.sandbox.config
    assert ArenadSandbox.config_deserialize(config if isinstance(config, dict) else config.model_dump()) == CONFIG


@needs_compose
def test_containers_reach_their_episodes(client: Client, tmp_path, monkeypatch: pytest.MonkeyPatch):
    async def satisfied() -> None:
        """Inspect asks for a newer engine than Debian 12 has, but what it does here works with both."""

    monkeypatch.setattr("inspect_ai.util._sandbox.docker.docker.validate_prereqs", satisfied)
    compose = tmp_path / "compose.yaml"
    service = f"image: {base_image()}\n    init: true\n    command: tail -f /dev/null\n    x-local: true\n    network_mode: host"
    compose.write_text(f"services:\n  default:\n    {service}\n")
    config = ArenadSandboxConfig(environment="mini", sandbox="docker", config=str(compose), proxy_host="127.0.0.1")
    log = run(["turkle.left.1", "turkle.left.2"], client, config, log_dir=str(tmp_path / "logs"))
    assert log.status == "success", log.error
    assert values(log) == {"turkle.left.1": 1.0, "turkle.left.2": 1.0}
