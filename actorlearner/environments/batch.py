"""A batch of environments that step together."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tree

from actorlearner.environments.environment import EnvSteps, Nest, Step
from actorlearner.environments.guarded import GuardedEnvironment
from actorlearner.process.heartbeat import LONG_PATIENCE_S, beat


class EnvironmentBatch:
    """Steps several environments, and resets those whose episodes ended.

    Attributes:
      observations: nest of arrays [environments, ...], the observations to act on next.
      first: bool [environments], whether each is the first of its episode.
    """

    def __init__(
        self, environments: Sequence[GuardedEnvironment], cut_after: Sequence[int] | None = None
    ) -> None:
        """Resets all environments.

        Args:
          environments: at least one.
          cut_after: for each environment, the env steps after which its current episode is truncated, once,
            so that the environments do not stay in step; None: never.

        Raises:
          RunError: an environment failed too often in a row.
        """
        self._environments = list(environments)
        self._steps_left = np.array(cut_after or [0] * len(environments))
        self.observations = stack([self._first_observation(i) for i in range(len(self._environments))])
        self.first = np.ones(len(self._environments), dtype=np.bool_)

    def step(self, actions: Nest, policy_train_step: int) -> EnvSteps:
        """Takes one env step in each environment; environments in separate processes step in parallel.

        Args:
          actions: nest of arrays [environments, ...].
          policy_train_step: train step of the variables that chose the actions.

        Raises:
          RunError: an environment failed too often in a row.
        """
        observation, first = self.observations, self.first
        pairs = list(zip(self._environments, unstack(actions), strict=True))
        for environment, action in pairs:
            environment.send(action)
        answers = [environment.step(action) for environment, action in pairs]
        steps = [answer or self._given_up(i) for i, answer in enumerate(answers)]
        next_observation = stack([step.observation for step in steps])
        ended = np.array([step.last for step in steps], dtype=np.bool_)
        cut = self._cut() & ~ended
        last = ended | cut
        self.first = last
        self.observations = self._reset(steps, last) if last.any() else next_observation
        rejected = np.array([step.rejected for step in steps], dtype=np.bool_)
        if rejected.any():
            next_observation = tree.map_structure(
                lambda before, after: np.where(_like(rejected, after), before, after),
                observation,
                next_observation,
            )
        return EnvSteps(
            observation=observation,
            first=first,
            action=actions,
            reward=np.array([step.reward for step in steps], dtype=np.float32),
            discount=np.array([step.discount for step in steps], dtype=np.float32),
            next_observation=next_observation,
            last=last,
            policy_train_step=np.full(len(steps), policy_train_step, np.int64),
            valid=~rejected,
            cut=cut,
            info=[step.info for step in steps],
        )

    def _first_observation(self, i: int) -> Nest:
        beat(f"resetting environment {i}", patience_s=LONG_PATIENCE_S)
        return self._environments[i].reset()

    def _cut(self) -> npt.NDArray[np.bool_]:
        """Returns for each environment whether its episode is cut off at this env step."""
        self._steps_left -= 1
        return self._steps_left == 0

    def _given_up(self, i: int) -> Step:
        """Returns a rejected last Step, for an environment that failed, so that a reset follows."""
        observation = tree.map_structure(lambda leaf: leaf[i], self.observations)
        return Step(observation, 0.0, 1.0, last=True, rejected=True)

    def _reset(self, steps: Sequence[Step], last: npt.NDArray[np.bool_]) -> Nest:
        """Resets the environments whose episodes ended; returns the next observations of all."""
        return stack(
            [self._first_observation(i) if last[i] else step.observation for i, step in enumerate(steps)]
        )

    @property
    def faults(self) -> int:
        """Number of faults of all environments together."""
        return sum(environment.faults for environment in self._environments)

    def close(self) -> None:
        """Closes all environments; those in separate processes at once."""
        for environment in self._environments:
            environment.begin_close()
        for environment in self._environments:
            environment.close()


def _like(flags: npt.NDArray[np.bool_], leaf: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Returns flags [environments] in a shape that broadcasts against a leaf [environments, ...]."""
    return flags.reshape(-1, *[1] * (leaf.ndim - 1))


def stack(nests: Sequence[Nest]) -> Nest:
    """Returns a nest of arrays [len(nests), ...]."""
    return tree.map_structure(lambda *leaves: np.stack(leaves), *nests)


def unstack(actions: Nest) -> Iterable[Nest]:
    """Inverts `stack`: returns one nest for each index of the first dimension."""
    if isinstance(actions, np.ndarray):  # The common case: iterating over an array is faster.
        return actions
    leaves = zip(*tree.flatten(actions), strict=True)
    return (tree.unflatten_as(actions, parts) for parts in leaves)
