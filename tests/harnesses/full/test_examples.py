"""Runs the examples as their first lines say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from arenad import Client

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def run(*words: str) -> str:
    """Runs a program, which must succeed, and returns its output."""
    done = subprocess.run([sys.executable, *words], cwd=EXAMPLES, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_scripted_agent_passes_in_forty_lines(client: Client):
    assert run("scripted_agent.py") == "turkle.left.1: passed with the answer 7, reward 1.0\n"
    assert len((EXAMPLES / "scripted_agent.py").read_text().splitlines()) <= 40


def test_the_group_of_rollouts_has_one_that_is_better(client: Client):
    told = run("group_rollout.py")
    assert told == "rewards [0.0, 0.0, 0.0, 1.0], advantages [-0.25, -0.25, -0.25, 0.75]\n"


def test_the_suite_of_playwright_has_an_episode_for_each_test(client: Client):
    known = len(client.episodes())
    told = run("-m", "pytest", "-q", "-p", "arenad.pytest_plugin", "-p", "no:cacheprovider", "playwright_suite")
    assert told.splitlines()[-1].startswith("4 passed"), told
    assert len(client.episodes()) == known + 4
    assert os.listdir(EXAMPLES / "playwright_suite").count("test-results") == 0
