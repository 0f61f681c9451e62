"""Gymnasium's own checker and vectors, on tasks of `mini` in the daemon's browser."""

from __future__ import annotations

import math
import subprocess

import arenad.gymnasium
import gymnasium as gym
import numpy as np
import pytest
from arenad import Client, EpisodeVoid
from arenad.gymnasium import ArenaEnv
from gymnasium.utils.env_checker import check_env


@pytest.fixture
def made(client: Client):
    envs: list[gym.Env] = []

    def make(task: str, **kwargs) -> ArenaEnv:
        env = gym.make("arenad/Task-v0", task=task, environment="mini", **kwargs)
        envs.append(env)
        return env.unwrapped

    yield make
    for env in envs:
        env.close()


def id_of(observation: dict, part: str) -> str:
    (line,) = [line for line in observation["text"].splitlines() if part in line]
    return line.strip().partition("]")[0].removeprefix("[")


def test_the_checker_of_gymnasium_passes(made):
    check_env(made("turkle.left.1", render_mode="rgb_array"))


def test_a_task_is_judged_when_the_agent_stops(made, client):
    env = made("turkle.left.1")
    observation, info = env.reset()
    assert "Reviews of April 2023" in observation["goal"] and "Reviews of April 2023" in observation["text"]
    first, episode = observation["url"], info["arenad"]["episode"]
    observation, reward, terminated, truncated, _ = env.step("click [99999]")
    assert (reward, terminated, truncated, observation["error"]) == (0.0, False, False, "'99999'")
    _, reward, terminated, truncated, info = env.step("stop [7]")
    assert (reward, terminated, truncated, info["verdict"]) == (1.0, True, False, "passed")
    with pytest.raises(gym.error.ResetNeeded):
        env.step("go_back")
    observation, again = env.reset(options={"task": "turkle.left.2"})
    assert observation["url"] == first, "the addresses are the same in every episode"
    assert client.find_episode(episode)["state"] == "released" and again["arenad"]["task"] == "turkle.left.2"
    assert env.step("stop [13]")[1:3] == (0.0, True)


def test_the_state_of_a_site_is_judged(made):
    env = made("homepage.note.1")
    observation, _ = env.reset()
    observation, *_ = env.step("click [" + id_of(observation, "link 'Scratchpad'") + "]")
    observation, *_ = env.step("type [" + id_of(observation, "textbox 'Title'") + "] [Tide table] [0]")
    text = "High water at Port Elsing is at ten past six."
    observation, *_ = env.step("type [" + id_of(observation, "textbox 'Text'") + f"] [{text}] [0]")
    observation, *_ = env.step("click [" + id_of(observation, "button 'Save note'") + "]")
    assert "Tide table" in observation["text"], observation["error"]
    assert env.step("stop")[1:3] == (1.0, True)


def test_screenshots_are_observations(made):
    env = made("turkle.left.1", screenshot=True, viewport=(640, 480), render_mode="rgb_array")
    observation, _ = env.reset()
    assert observation in env.observation_space
    assert observation["screenshot"].shape == (480, 640, 3) and len(np.unique(observation["screenshot"])) > 4
    assert np.array_equal(env.render(), observation["screenshot"])


def test_the_last_of_too_many_steps_is_judged(made):
    env = made("turkle.left.1", max_steps=2)
    env.reset()
    assert env.step("scroll [down]")[2:4] == (False, False)
    _, reward, terminated, truncated, info = env.step("scroll [up]")
    assert (reward, terminated, truncated, info["verdict"]) == (0.0, False, True, "failed")


def kill_containers(client: Client, env: ArenaEnv) -> None:
    (given,) = env.episode.sites
    (site,) = [site for site in client.sites() if site["name"] == given["site"]]
    slots = site["slots"] or [{"number": given["slot"], "containers": site["containers"]}]
    for slot in slots:
        if slot["number"] == given["slot"]:
            for container in slot["containers"]:
                subprocess.run(["docker", "kill", container["id"]], check=True, stdout=subprocess.DEVNULL)
    assert env.episode._hold.ends_within(20) is not None


def test_a_dead_site_is_void_and_never_a_reward(made, client):
    env = made("turkle.left.1")
    env.reset()
    kill_containers(client, env)
    with pytest.raises(EpisodeVoid):
        env.step("stop [8]")
    patient = made("turkle.left.1", on_void="truncate")
    patient.reset()
    kill_containers(client, patient)
    _, reward, terminated, truncated, info = patient.step("stop [8]")
    assert math.isnan(reward) and (terminated, truncated) == (False, True) and "died" in info["void"]
    patient.reset()
    assert patient.step("stop [7]")[1] == 1.0


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_vector_of_environments_has_an_episode_each(client: Client, mode):
    arenad.gymnasium.register(["turkle.left.1"], environment="mini")
    given = {"shared_memory": False} if mode == "async" else {}
    envs = gym.make_vec("arenad/turkle.left.1", num_envs=3, vectorization_mode=mode, vector_kwargs=given)
    try:
        observations, infos = envs.reset()
        assert all("Reviews of April 2023" in goal for goal in observations["goal"])
        assert len(set(infos["arenad"]["episode"])) == 3
        _, rewards, terminated, _, _ = envs.step(("stop [7]", "stop [8]", "scroll [down]"))
        assert (list(rewards), list(terminated)) == ([1.0, 0.0, 0.0], [True, True, False])
    finally:
        envs.close()
