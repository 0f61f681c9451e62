"""Writes what `nemo_gym` itself answers to `/aggregate_metrics`.

Usage: make.py >aggregate_metrics.json, with `nemo-gym` 0.4.0 (Python 3.12) and pandas, wandb and orjson.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from nemo_gym.reward_profile import compute_aggregate_metrics


def rollout(task: int, number: int, reward: float, **fields: Any) -> dict[str, Any]:
    return {"_ng_task_index": task, "_ng_rollout_index": number, "reward": reward, **fields}


USAGE = {"usage": {"input_tokens": 10, "output_tokens": 5, "details": {"cached": 1}}}
CASES: list[list[dict[str, Any]]] = [
    [],
    [{"reward": 1.0}],
    [rollout(0, 0, 1.0), rollout(0, 1, 0.0), rollout(1, 0, 0.5), rollout(1, 1, 0.25)],
    [rollout(3, 0, 1.0, steps=4, passed=True, verdict="passed"), rollout(1, 0, 0.0, steps=7, passed=False)],
    [rollout(0, 0, 1.0, response=USAGE), rollout(0, 1, 0.0), rollout(0, 2, 0.0, steps=3)],
    [rollout(0, 0, 1.0, steps=2), rollout(1, 0, 0.0)],
    [rollout(5, 2, 0.1), rollout(5, 0, 0.2), rollout(5, 1, 0.7)],
    [{"reward": 1.0}, {"reward": 0.0}],
]


def main() -> None:
    vectors = []
    for case in CASES:
        vector: dict[str, Any] = {"verify_responses": case, "raised": None, "metrics": None}
        try:
            vector["metrics"] = compute_aggregate_metrics(case).model_dump()
        except (KeyError, ValueError) as error:
            vector["raised"] = str(error)
        vectors.append(vector)
    json.dump(vectors, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
