"""A scripted agent that does a task on each site of `mini`, by what it reads in the accessibility tree.

As a program, `site_agent.py URL TASK...` does the tasks through the client of `openenv` itself, once as they are meant and
once by stopping at once, and prints the rewards as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Protocol
from urllib.parse import urljoin

# A step is an action whose element is named by a part of its line in the tree, after a part of an earlier line and ` >> `
# if there are several, or an address within the site.
Step = tuple[str, ...]

TASKS: dict[str, list[Step]] = {
    "shopping.search.1": [("type", "textbox 'Search'", "waterproof camera", "1")],
    "shopping_admin.open-product.1": [("goto", "/dashboard/catalogue/products/137/")],
    "wikipedia.search.2": [("type", "textbox \"Search 'Wikipedia'\"", "lighthouse", "1")],
    "reddit.open-forum.1": [("goto", "/c/space/15/")],
    "gitlab.open-issue.1": [("goto", "/byteblaze/larkmap/issues"), ("click", "link 'Token appears in the log")],
    "map.search.1": [("type", "textbox", "pharmacies in Stonebridge", "1")],
    "turkle.accept.1": [("click", "cell 'Reviews of May 2023' >> button 'Accept next Task'")],
    "homepage.note.1": [
        ("click", "link 'Scratchpad'"),
        ("type", "textbox 'Title'", "Tide table", "0"),
        ("type", "textbox 'Text'", "High water at Port Elsing is at ten past six.", "0"),
        ("click", "button 'Save note'"),
    ],
}


class Environment(Protocol):
    """An episode with a browser: the first observation of a task, and a step with its observation, reward and end."""

    def reset(self, task: str) -> dict[str, Any]: ...

    def step(self, action: str) -> tuple[dict[str, Any], float | None, bool]: ...


def action(step: Step, observation: dict[str, Any]) -> str:
    """Returns a step as an action, with the id that the element has in an observation."""
    verb, target, *rest = step
    if verb == "goto":
        return f"goto [{urljoin(observation['url'], target)}]"
    return " ".join([verb, *(f"[{word}]" for word in [id_of(observation["text"], target), *rest])])


def id_of(page: str, target: str) -> str:
    """Returns the id of an element in an accessibility tree."""
    lines = iter(page.splitlines())
    for part in target.split(" >> "):
        line = next((line for line in lines if part in line), None)
        assert line is not None, f"no {target} in:\n{page}"
    return line.strip().partition("]")[0].removeprefix("[")


def accomplish(environment: Environment, task: str) -> float | None:
    """Does a task, and returns the reward."""
    observation = environment.reset(task)
    for step in TASKS[task]:
        observation, _, _ = environment.step(action(step, observation))
        assert not observation["error"], f"{step}: {observation['error']}"
    _, reward, is_done = environment.step("stop")
    assert is_done
    return reward


def give_up(environment: Environment, task: str) -> float | None:
    """Stops at once, and returns the reward."""
    environment.reset(task)
    return environment.step("stop")[1]


class Session:
    """A session of the environment service."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def reset(self, task: str) -> dict[str, Any]:
        observation: dict[str, Any] = self._client.reset(task=task).observation
        return observation

    def step(self, action: str) -> tuple[dict[str, Any], float | None, bool]:
        result = self._client.step({"action": action})
        return result.observation, result.reward, result.done


def main(url: str, tasks: list[str]) -> None:
    from openenv.core.generic_client import GenericEnvClient

    with GenericEnvClient(base_url=url).sync() as client:
        session = Session(client)
        print(json.dumps({task: [accomplish(session, task), give_up(session, task)] for task in tasks}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
