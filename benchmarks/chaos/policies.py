"""Checks that no actor ever acts with an older policy than before."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from actorlearner.agents.experience import RANDOM_TRAIN_STEP
from actorlearner.records.metrics import read_records


def steps_back(records: Iterable[dict[str, Any]]) -> list[str]:
    """Returns a line for each decrease of the policy version in one actor's records, without random actions.

    Args:
      records: of metrics/collect-<i>.jsonl, also of several processes one after the other.
    """
    found = []
    newest = (-1, RANDOM_TRAIN_STEP)
    for record in records:
        if record["policy_train_step"] == RANDOM_TRAIN_STEP:
            continue
        order = (record["policy_generation"], record["policy_train_step"])
        if order < newest:
            found.append(f"{_name(newest)} was followed by {_name(order)}")
        newest = order
    return found


def _name(order: tuple[int, int]) -> str:
    return f"train step {order[1]:,} of learner {order[0]}"


def all_steps_back(metrics: Path) -> tuple[int, list[str]]:
    """Checks all actors; returns the number of their records and the lines of `steps_back`."""
    checked = 0
    found = []
    for path in sorted(metrics.glob("collect-*.jsonl")):
        records = read_records(path)
        checked += len(records)
        found += [f"{path.stem}: {line}" for line in steps_back(records)]
    return checked, found
