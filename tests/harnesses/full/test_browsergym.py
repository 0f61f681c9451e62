"""Environments of BrowserGym with an episode for each reset, driven by scripts."""

from __future__ import annotations

import os
import subprocess

import arenad.browsergym
import browsergym.core  # registers openended
import gymnasium as gym
import pytest
from arenad import Client, EpisodeVoid
from arenad.browsergym import EpisodeWrapper, make, with_episodes

LEFT = "browsergym/arenad.turkle.left.1"


@pytest.fixture
def wrapped(client: Client):
    made: list[EpisodeWrapper] = []

    def wrap(env: EpisodeWrapper) -> EpisodeWrapper:
        made.append(env)
        return env

    yield wrap
    for env in made:
        env.close()


def kill_containers(client: Client, env: EpisodeWrapper) -> None:
    (given,) = env.episode.sites
    (site,) = [site for site in client.sites() if site["name"] == given["site"]]
    slots = site["slots"] or [{"number": given["slot"], "containers": site["containers"]}]
    for slot in slots:
        if slot["number"] == given["slot"]:
            for container in slot["containers"]:
                subprocess.run(["docker", "kill", container["id"]], check=True, stdout=subprocess.DEVNULL)


def test_a_native_task_is_signed_in_and_judged(client, wrapped):
    env = wrapped(make(LEFT, client=client))
    observation, info = env.reset()
    assert "Reviews of April 2023" in observation["goal"]
    told = info["arenad"]
    assert client.find_episode(told["episode"])["labels"]["task"] == "turkle.left.1"
    # The page says whose it is, so the browser is signed in.
    assert "worker" in str(observation["axtree_object"])
    _, reward, terminated, _, _ = env.step("noop()")
    assert (reward, terminated) == (0, False)
    _, reward, terminated, _, info = env.step("send_msg_to_user('7')")
    assert (reward, terminated, info["task_info"]["verdict"]) == (1.0, True, "passed")

    _, again = env.reset()
    assert again["arenad"]["episode"] != told["episode"]
    assert client.find_episode(told["episode"])["state"] == "released", "each reset ends the episode before it"
    _, reward, terminated, _, info = env.step("send_msg_to_user('8')")
    assert (reward, terminated, info["task_info"]["verdict"]) == (0.0, True, "failed")


def test_a_page_that_was_changed_is_pristine_after_a_reset(client, wrapped):
    address = {"start_url": "http://homepage.arena.test/scratchpad.html"}
    env = wrapped(make("browsergym/openended", client=client, sites=["homepage"], task_kwargs=address))
    env.reset()
    before = env.episode.changes()["equal"]
    page = env.unwrapped.page
    page.get_by_label("Title").fill("mine")
    page.get_by_role("button", name="Save note").click()
    page.wait_for_url("**/scratchpad.html")
    after = env.episode.changes()["equal"]
    env.reset()
    assert (before, after, env.episode.changes()["equal"]) == (True, False, True)
    assert env.unwrapped.page.url == address["start_url"]


def test_a_dead_site_is_void_and_never_a_reward(client, wrapped):
    env = wrapped(make(LEFT, client=client))
    env.reset()
    kill_containers(client, env)
    with pytest.raises(EpisodeVoid):
        env.step("send_msg_to_user('8')")
    env.reset()
    assert env.step("send_msg_to_user('7')")[1] == 1.0


def test_a_result_of_the_benchmark_itself_is_not_trusted_after_the_site_died(client, wrapped):
    env = wrapped(with_episodes(gym.make("browsergym/webarena.141", slow_mo=0), client=client, sites=["shopping"]))
    env.reset()
    kill_containers(client, env)
    with pytest.raises(EpisodeVoid):
        env.step("send_msg_to_user('wrong')")


@pytest.mark.parametrize(("task", "site", "answer"), [(141, "shopping", "47.41"), (70, "map", "15213")])
def test_a_task_of_webarena_runs_by_the_benchmarks_own_code(client, wrapped, task, site, answer):
    import browsergym.webarena

    assert "WA_SHOPPING" not in os.environ
    env = wrapped(with_episodes(gym.make(f"browsergym/webarena.{task}", slow_mo=0), client=client, sites=[site]))
    observation, _ = env.reset()
    assert observation["url"].startswith("http://arena.test:"), "the addresses are the same in every episode"
    if site == "shopping":
        assert "Sign Out" in str(observation["axtree_object"]), "the benchmark's own code has signed in"
    assert env.step("noop()")[1:3] == (0, False)
    assert env.step(f"send_msg_to_user('{answer}')")[1:3] == (1.0, True)
    env.reset()
    assert env.step("send_msg_to_user('wrong')")[1:3] == (0.0, True)
    assert "WA_SHOPPING" not in os.environ and "http_proxy" not in os.environ, "the process has its own variables again"


def test_the_time_limit_judges_what_was_done(client, wrapped):
    env = wrapped(make("browsergym/arenad.turkle.statistics", client=client, max_episode_steps=1))
    env.reset()
    _, reward, terminated, truncated, _ = env.step("goto('http://turkle.arena.test/stats/')")
    assert (reward, terminated, truncated) == (1.0, False, True)


def test_a_native_task_needs_an_episode(client):
    arenad.browsergym.register("turkle.left.1")
    env = gym.make(LEFT)
    with pytest.raises(RuntimeError, match="runs in an episode"):
        env.reset()
    env.close()
