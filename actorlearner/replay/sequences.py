"""Cuts the env steps of several environments into sequences."""

from typing import Any

import numpy as np
import tree

from actorlearner.agents.experience import StoredSequence
from actorlearner.environments.environment import EnvSteps, Nest


class SequenceBuilder:
    """Turns each environment's env steps into sequences of `length`; one starts every `stride` env steps.

    Sequences continue across the ends of episodes, so that all env steps are in equally many sequences.
    """

    def __init__(self, length: int, stride: int) -> None:
        """Starts without env steps."""
        self._length = length
        self._stride = stride
        self._steps: list[EnvSteps] = []

    def add(self, steps: EnvSteps) -> StoredSequence | None:
        """Adds one env step of each environment; returns one complete sequence for each, or None."""
        self._steps.append(steps._replace(info=()))
        if len(self._steps) < self._length:
            return None
        sequences = _stacked(self._steps)
        del self._steps[: self._stride]
        return sequences

    def end(self) -> StoredSequence | None:
        """Drops the incomplete sequences; nothing is learned from them."""
        self._steps.clear()
        return None


def _stacked(steps: list[EnvSteps]) -> StoredSequence:
    def stack(*leaves: Any) -> Any:
        return np.stack(leaves, axis=1)  # [environments, T, ...]

    def each(part: str) -> Nest:
        return tree.map_structure(stack, *[getattr(step, part) for step in steps])

    return StoredSequence(
        observation=each("observation"),
        action=each("action"),
        reward=each("reward"),
        discount=each("discount"),
        next_observation=each("next_observation"),
        first=each("first"),
        last=each("last"),
        valid=each("valid"),
        policy_info=each("policy_info"),
        policy_state=steps[0].policy_state,
        policy_train_step=steps[0].policy_train_step,
        policy_generation=steps[0].policy_generation,
    )
