"""Trains a model with TRL's GRPO on the tasks of `mini`: each rollout has an episode and a browser of its own.

    pip install trl 'openenv[core]' jmespath
    ARENAD_OPENENV=127.0.0.1:8010 ARENAD_SLOTS=5 arenad up mini turkle && python examples/openenv_trainer.py MODEL

A rollout whose episode is void, because a site or the browser failed, has no reward: TRL leaves it out of the group's
baseline and does not learn from it. `OPENENV_URL` names a service elsewhere.
"""

import os
import sys

from datasets import Dataset
from openenv import GenericEnvClient
from trl import GRPOConfig, GRPOTrainer

URL = os.environ.get("OPENENV_URL", "http://127.0.0.1:8010")
TASKS = ["turkle.left.1", "turkle.left.2"]
GROUP = 4
PROMPT = "You use a web site to do a task. When you are done, call `stop` with the answer.\n\n"


class Site:
    """A session of the service. Its public methods are the tools of the model."""

    def __init__(self) -> None:
        self._client = GenericEnvClient(base_url=URL).sync()
        self._is_done = False
        self._reward: float | None = None

    def reset(self, task: str, **_: object) -> str:
        """Begins an episode in place of the one before, and returns the task and the first page."""
        self._is_done, self._reward = False, None
        observation = self._client.reset(task=task).observation
        return f"{observation['intent']}\n\n{observation['text']}"

    def click(self, element: str) -> str:
        """
        Clicks an element of the page.

        Args:
            element: The number in brackets before the element

        Returns:
            The page afterwards.
        """
        return self._act(f"click [{element}]")

    def type(self, element: str, text: str, press_enter: bool) -> str:
        """
        Types text into a field of the page.

        Args:
            element: The number in brackets before the field
            text: The text
            press_enter: Whether to press Enter afterwards

        Returns:
            The page afterwards.
        """
        return self._act(f"type [{element}] [{text}] [{int(press_enter)}]")

    def scroll(self, direction: str) -> str:
        """
        Scrolls the page.

        Args:
            direction: Either up or down

        Returns:
            The page afterwards.
        """
        return self._act(f"scroll [{direction}]")

    def goto(self, url: str) -> str:
        """
        Opens an address.

        Args:
            url: The address

        Returns:
            The page.
        """
        return self._act(f"goto [{url}]")

    def stop(self, answer: str) -> str:
        """
        Ends the task.

        Args:
            answer: The answer, or nothing if the task asks for none

        Returns:
            A confirmation.
        """
        self._act(f"stop [{answer}]")
        return "The task has ended."

    def get_reward(self) -> float | None:
        """Returns the reward, for which an agent that has not stopped is stopped; None if there is no verdict."""
        if not self._is_done:
            try:
                self.stop("")
            except RuntimeError as error:
                print(f"a rollout is left out: {error}")
        return self._reward

    def _act(self, action: str) -> str:
        if self._is_done:
            raise ValueError("The task has ended.")
        try:
            result = self._client.step({"action": action})
        except RuntimeError:
            # The environment failed, and the model did nothing wrong: there is no reward.
            self._is_done, self._reward = True, None
            raise
        self._is_done, self._reward = result.done, result.reward
        error = result.observation["error"]
        return f"{error}\n\n{result.observation['text']}" if error else result.observation["text"]


def main() -> None:
    prompt = [{"role": "user", "content": PROMPT}]
    trainer = GRPOTrainer(
        model=sys.argv[1] if len(sys.argv) > 1 else "Qwen/Qwen3-0.6B",
        train_dataset=Dataset.from_list([{"prompt": prompt, "task": task} for task in TASKS]),
        environment_factory=Site,
        args=GRPOConfig(num_generations=GROUP, per_device_train_batch_size=GROUP, max_completion_length=4096),
    )
    trainer.train()


if __name__ == "__main__":
    main()
