"""A group of rollouts from one state: the first steps are taken once, then the episode is forked for each of the group.

    ARENAD_SLOTS=6 arenad up mini turkle && python examples/group_rollout.py

The rewards of a group tell which of its continuations was better than the others, as policy gradient methods with group
baselines need it. A child that is void has no reward, and is left out of the baseline.
"""

from concurrent.futures import ThreadPoolExecutor
from statistics import mean

from arenad import Client, Episode, EpisodeVoid
from arenad.types import Begun

TASK = "turkle.left.1"


def shared_steps(episode: Episode) -> None:
    """Takes the steps that all rollouts have in common. A trainer's policy would act in a browser here."""
    episode.value("turkle", "http: GET /login/ | status")


def continuation(episode: Episode, number: int) -> str:
    """Returns the answer of one rollout. A trainer would sample it."""
    return str(4 + number)


def rollout(child: Episode, number: int, begun: Begun) -> float | None:
    try:
        with child:
            answer = continuation(child, number)
            return child.evaluate(begun=begun, answer=answer)["reward"]
    except EpisodeVoid as void:
        print(f"rollout {number} is left out: {void.reason}")
        return None


def group(client: Client, size: int) -> list[float | None]:
    with client.episode(task=TASK, timeout=600) as parent:
        begun = parent.begin()
        shared_steps(parent)
        children = parent.fork(size, timeout=600)
        with ThreadPoolExecutor(size) as threads:
            return list(threads.map(rollout, children, range(size), [begun] * size))


def main() -> None:
    with Client() as client:
        rewards = group(client, size=4)
    known = [reward for reward in rewards if reward is not None]
    baseline = mean(known)
    advantages = [None if reward is None else round(reward - baseline, 3) for reward in rewards]
    print(f"rewards {rewards}, advantages {advantages}")


if __name__ == "__main__":
    main()
