"""Agents without a model, in a module that workers can import."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import bgym
from agentlab.agents.agent_args import AgentArgs


class ScriptedAgent(bgym.Agent):
    """Looks at the page once, and then gives the answer that was written down for its task."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.action_set = bgym.HighLevelActionSet(subsets=["chat", "nav", "bid", "infeas"])
        self._answers = answers
        self._task = ""
        self._looked = False

    def set_task_name(self, task: str) -> None:
        self._task = task

    def obs_preprocessor(self, obs: dict[str, Any]) -> dict[str, Any]:
        return obs

    def get_action(self, obs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        if not self._looked:
            self._looked = True
            return "noop(200)", {}
        answer = self._answers.get(self._task, "I do not know")
        return f"send_msg_to_user({answer!r})", {}


@dataclass
class ScriptedArgs(AgentArgs):
    """The arguments of `ScriptedAgent`."""

    agent_name: str = "scripted"
    answers: dict[str, str] = field(default_factory=dict)

    def make_agent(self) -> ScriptedAgent:
        return ScriptedAgent(self.answers)
