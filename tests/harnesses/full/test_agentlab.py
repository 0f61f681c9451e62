"""Studies of AgentLab in which each task has an episode, with several workers and a scripted agent."""

from __future__ import annotations

import bgym
import pytest
from agents import ScriptedArgs
from arenad import Client
from arenad.agentlab import ArenadEnvArgs, make_study, native_benchmark, rewards

WORKERS = 8


def test_all_native_tasks_of_a_site_run_at_the_same_time(client: Client, tmp_path):
    benchmark = native_benchmark("mini", tasks=["turkle."], client=client, max_steps=4)
    names = {args.task_name for args in benchmark.env_args_list}
    assert len(names) == 25
    answers = {"arenad.turkle.left.1": "7", "arenad.turkle.left.2": "14", "arenad.turkle.finished": "11"}
    study = make_study(ScriptedArgs(answers=answers), benchmark, client=client, environment="mini")
    assert all(args.depends_on == () for args in study.exp_args_list)
    study.run(n_jobs=WORKERS, parallel_backend="joblib", n_relaunch=1, exp_root=tmp_path)

    found = rewards(study.dir)
    assert set(found) == names
    passed = {task for task, each in found.items() if each == [1.0]}
    assert passed == set(answers)
    assert {each[0] for each in found.values()} == {0.0, 1.0}, "no episode was void"
    ended = client.episodes(labels={"study": study.dir.name})
    assert len(ended) == 25 and {episode["state"] for episode in ended} == {"released"}
    slots = {site["slot"] for episode in ended for site in episode["sites"]}
    assert len(slots) > 3, f"tasks ran at the same time, on slots {slots}"


def test_tasks_of_webarena_need_no_order(client: Client, tmp_path):
    tasks = {"webarena.141": "47.41", "webarena.142": "95.23", "webarena.188": "365.42", "webarena.70": "15213"}
    benchmark = bgym.DEFAULT_BENCHMARKS["webarena"]().subset_from_list(list(tasks))
    for args in benchmark.env_args_list:
        args.slow_mo = 0
    wrong = {**tasks, "webarena.188": "1"}
    study = make_study(ScriptedArgs(answers=wrong), benchmark, client=client, environment="mini")
    sites = {exp.env_args.task_name: exp.env_args.sites for exp in study.exp_args_list}
    assert sites["webarena.141"] == ["homepage", "map", "shopping", "wikipedia"]
    assert all(isinstance(exp.env_args, ArenadEnvArgs) and exp.depends_on == () for exp in study.exp_args_list)
    study.run(n_jobs=4, parallel_backend="joblib", n_relaunch=1, exp_root=tmp_path)
    assert rewards(study.dir) == {task: [0.0 if task == "webarena.188" else 1.0] for task in tasks}


def test_a_void_episode_is_an_error_that_agentlab_repeats(client: Client, tmp_path, monkeypatch: pytest.MonkeyPatch):
    benchmark = native_benchmark("mini", tasks=["turkle.left.1"], client=client, max_steps=4)
    study = make_study(ScriptedArgs(answers={"arenad.turkle.left.1": "7"}), benchmark, environment="mini", client=client)
    import arenad.browsergym as episodes

    original, attempts = episodes.EpisodeWrapper.step, []

    def step(self, action):
        attempts.append(action)
        if len(attempts) == 1:
            site = next(site for site in client.sites() if site["name"] == "turkle")
            number = self.episode.sites[0]["slot"]
            import subprocess

            for slot in site["slots"]:
                if slot["number"] == number:
                    for container in slot["containers"]:
                        subprocess.run(["docker", "kill", container["id"]], check=True)
            assert self.episode._hold.ends_within(20) is not None
        return original(self, action)

    monkeypatch.setattr(episodes.EpisodeWrapper, "step", step)
    study.run(n_jobs=1, parallel_backend="sequential", n_relaunch=1, exp_root=tmp_path)
    assert rewards(study.dir) == {"arenad.turkle.left.1": [None]}
    study.run(n_jobs=1, parallel_backend="sequential", n_relaunch=1, exp_root=tmp_path)
    assert rewards(study.dir) == {"arenad.turkle.left.1": [1.0]}
