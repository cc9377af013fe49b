"""Checks that no actor ever acts with an older policy than before."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from actorlearner.records.metrics import read_records
from actorlearner.replay.transition import RANDOM_POLICY


def steps_back(records: Iterable[dict[str, Any]]) -> list[str]:
    """Says where the policy versions of one actor's records go backwards; random actions are left out.

    Args:
      records: of metrics/collect-<i>.jsonl, also of several processes one after the other.
    """
    found = []
    newest = (-1, RANDOM_POLICY)
    for record in records:
        if record["policy_train_step"] == RANDOM_POLICY:
            continue
        order = (record["policy_generation"], record["policy_train_step"])
        if order < newest:
            found.append(f"{_name(newest)} was followed by {_name(order)}")
        newest = order
    return found


def _name(order: tuple[int, int]) -> str:
    return f"train step {order[1]:,} of learner {order[0]}"


def all_steps_back(metrics: Path) -> tuple[int, list[str]]:
    """Checks all actors; returns how many records they have, and what `steps_back` says of these."""
    checked = 0
    found = []
    for path in sorted(metrics.glob("collect-*.jsonl")):
        records = read_records(path)
        checked += len(records)
        found += [f"{path.stem}: {line}" for line in steps_back(records)]
    return checked, found
