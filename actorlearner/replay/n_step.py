"""Builds n-step transitions from env steps."""

import dataclasses
from typing import Any

import numpy as np
import tree

from actorlearner.agents.experience import StoredTransition
from actorlearner.environments.batch import stack
from actorlearner.environments.environment import EnvSteps, Nest


@dataclasses.dataclass
class _Started:
    """An incomplete transition; `reward` and `discount` are its R and D (see StoredTransition) so far."""

    observation: Nest
    action: Nest
    policy_train_step: int
    reward: float
    discount: float


class NStepTransitions:
    """Turns the env steps of several environments into n-step transitions.

    Each env step starts one transition, which is complete after n env steps, or earlier at the end of its
    episode. So the last env steps of an episode start transitions, too, and no transition reaches into the
    next episode.
    """

    def __init__(self, n: int, gamma: float, environments: int) -> None:
        """Starts without transitions; `gamma` is the agent's discount of one env step."""
        self._n = n
        self._gamma = gamma
        self._started: list[list[_Started]] = [[] for _ in range(environments)]
        self._next_observation: Nest = None

    def add(self, steps: EnvSteps) -> StoredTransition | None:
        """Adds one env step of each environment.

        Returns the transitions that this completes, oldest first in each environment; None without any.
        """
        if self._n == 1:
            return _single(steps)
        self._next_observation = steps.next_observation
        complete: list[tuple[int, _Started]] = []
        for i, started in enumerate(self._started):
            if not steps.valid[i]:
                complete += [(i, transition) for transition in started]
                started.clear()
                continue
            reward, discount = float(steps.reward[i]), float(steps.discount[i])
            for transition in started:
                weight = self._gamma * transition.discount
                transition.reward += weight * reward
                transition.discount = weight * discount
            started.append(_start(steps, i))
            # The oldest has as many env steps as there are incomplete transitions.
            ready = len(started) if steps.last[i] else int(len(started) == self._n)
            complete += [(i, transition) for transition in started[:ready]]
            del started[:ready]
        return self._batch(complete)

    def end(self) -> StoredTransition | None:
        """Returns the incomplete transitions, truncated at the newest observation as by a time limit."""
        rest = [(i, transition) for i, started in enumerate(self._started) for transition in started]
        for started in self._started:
            started.clear()
        return self._batch(rest)

    def _batch(self, transitions: list[tuple[int, _Started]]) -> StoredTransition | None:
        if not transitions:
            return None
        parts = [part for _, part in transitions]
        return StoredTransition(
            observation=stack([part.observation for part in parts]),
            action=stack([part.action for part in parts]),
            reward=np.array([part.reward for part in parts], np.float32),
            discount=np.array([part.discount for part in parts], np.float32),
            next_observation=stack([_row(self._next_observation, i) for i, _ in transitions]),
            policy_train_step=np.array([part.policy_train_step for part in parts], np.int64),
        )


def _single(steps: EnvSteps) -> StoredTransition | None:
    """Returns the transitions of single env steps (n = 1)."""
    transitions = StoredTransition(
        steps.observation,
        steps.action,
        steps.reward,
        steps.discount,
        steps.next_observation,
        steps.policy_train_step,
    )
    if steps.valid.all():
        return transitions
    if not steps.valid.any():
        return None
    kept: StoredTransition = tree.map_structure(lambda leaf: leaf[steps.valid], transitions)
    return kept


def _start(steps: EnvSteps, i: int) -> _Started:
    return _Started(
        observation=_row(steps.observation, i),
        action=_row(steps.action, i),
        policy_train_step=int(steps.policy_train_step[i]),
        reward=float(steps.reward[i]),
        discount=float(steps.discount[i]),
    )


def _row(nest: Nest, i: int) -> Any:
    return tree.map_structure(lambda leaf: leaf[i], nest)
