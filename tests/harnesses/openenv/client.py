"""A scripted policy that gets episodes of the environment service through the client of `openenv` itself.

Usage: client.py URL TASK ACTION..., which prints what the client saw, as JSON. `--` between actions begins another
episode of the task.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from openenv.core.generic_client import GenericEnvClient


def run(url: str, task: str, actions: list[str]) -> dict[str, Any]:
    """Performs the actions, and returns the rewards of all episodes, the errors, and the last state."""
    seen: dict[str, Any] = {"rewards": [], "errors": [], "intent": None}
    with GenericEnvClient(base_url=url).sync() as env:
        result = env.reset(task=task, seed=7)
        seen["intent"] = result.observation["intent"]
        for action in actions:
            try:
                if action == "--":
                    result = env.reset(task=task)
                else:
                    result = env.step({"action": action})
            except RuntimeError as error:
                seen["errors"].append(str(error))
                continue
            if result.done:
                seen["rewards"].append(result.reward)
        seen["state"] = env.state()
    return seen


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], sys.argv[2], sys.argv[3:])))
