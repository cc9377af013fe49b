"""Several environments stepped as one batch, and the statistics of their episodes."""

import collections
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np
import tree

from actorlearner.environments.env_steps import EnvSteps
from actorlearner.environments.environment import Nest, Step


class FallibleEnvironment(Protocol):
    """An Environment whose `step` may answer None: it failed, and `reset` comes next.

    Attributes:
      faults: how often it failed.
    """

    faults: int

    def reset(self) -> Nest:
        """Starts an episode and returns its first observation."""

    def step(self, action: Nest) -> Step | None:
        """Takes one env step."""

    def close(self) -> None:
        """Frees the simulator."""


class EnvironmentBatch:
    """Steps several environments in turn and resets each where its episode ended.

    Attributes:
      observations: nest of arrays [environments, ...] to act on next.
      first: bool [environments], where an episode begins.
    """

    def __init__(self, environments: Sequence[FallibleEnvironment]) -> None:
        """Resets all environments."""
        self._environments = list(environments)
        self.observations = _stack([environment.reset() for environment in self._environments])
        self.first = np.ones(len(self._environments), dtype=np.bool_)

    def step(self, actions: Nest, policy_train_step: int) -> EnvSteps:
        """Takes one env step in each environment; blocks for all of them together.

        Args:
          actions: nest of arrays [environments, ...].
          policy_train_step: of the variables that chose them.
        """
        observation, first = self.observations, self.first
        answers = [
            environment.step(action)
            for environment, action in zip(self._environments, _unstack(actions), strict=True)
        ]
        valid = np.array([answer is not None for answer in answers], dtype=np.bool_)
        steps = [answer or self._nothing(i) for i, answer in enumerate(answers)]
        next_observation = _stack([step.observation for step in steps])
        last = np.array([step.last for step in steps], dtype=np.bool_)
        self.first = last
        self.observations = self._reset(steps) if last.any() else next_observation
        return EnvSteps(
            observation=observation,
            first=first,
            action=actions,
            reward=np.array([step.reward for step in steps], dtype=np.float32),
            discount=np.array([step.discount for step in steps], dtype=np.float32),
            next_observation=next_observation,
            last=last,
            policy_train_step=np.full(len(steps), policy_train_step, np.int64),
            valid=valid,
        )

    def _nothing(self, i: int) -> Step:
        """Stands in for the answer of an environment that failed, and has it reset."""
        return Step(tree.map_structure(lambda leaf: leaf[i], self.observations), 0.0, 1.0, last=True)

    def _reset(self, steps: Sequence[Step]) -> Nest:
        """Resets the environments whose episodes ended; returns what to act on next in all of them."""
        return _stack(
            [
                environment.reset() if step.last else step.observation
                for environment, step in zip(self._environments, steps, strict=True)
            ]
        )

    @property
    def faults(self) -> int:
        """How often any of the environments failed."""
        return sum(environment.faults for environment in self._environments)

    def close(self) -> None:
        """Closes all environments."""
        for environment in self._environments:
            environment.close()


def _stack(observations: list[Nest]) -> Nest:
    return tree.map_structure(lambda *leaves: np.stack(leaves), *observations)


def _unstack(actions: Nest) -> Iterable[Nest]:
    if isinstance(
        actions, np.ndarray
    ):  # Most actions: iterating over the array spares a nest for each of its rows.
        return actions
    leaves = zip(*tree.flatten(actions), strict=True)
    return (tree.unflatten_as(actions, parts) for parts in leaves)


class EpisodeStatistics:
    """Average return and length over the newest episodes of all environments of an actor.

    Each environment has its own running sums, so that a long episode in one is not mixed with the
    episodes of another.
    """

    def __init__(
        self,
        environments: int,
        window: int = 10,
        ended: Callable[[int, float, int], None] = lambda environment, episode_return, length: None,
    ) -> None:
        """Averages over `window` episodes, or one of each environment if there are more of them.

        Args:
          environments: how many.
          window: see above.
          ended: is called with each episode: in which environment, its undiscounted return, and its length.
        """
        self._ended = ended
        self._return = np.zeros(environments, dtype=np.float64)
        self._length = np.zeros(environments, dtype=np.int64)
        size = max(window, environments)
        self._returns: collections.deque[float] = collections.deque(maxlen=size)
        self._lengths: collections.deque[int] = collections.deque(maxlen=size)
        self.episodes = 0

    def add(self, steps: EnvSteps) -> None:
        """Adds one env step of each environment; an episode that is given up does not count."""
        self._return += steps.reward
        self._length += 1
        if not steps.valid.all():
            self._return[~steps.valid] = 0.0
            self._length[~steps.valid] = 0
        for i in np.flatnonzero(steps.last & steps.valid):
            self._returns.append(float(self._return[i]))
            self._lengths.append(int(self._length[i]))
            self._ended(int(i), self._returns[-1], self._lengths[-1])
            self._return[i] = 0.0
            self._length[i] = 0
            self.episodes += 1

    @property
    def average_return(self) -> float | None:
        """Mean undiscounted return; None before the first episode has ended."""
        return float(np.mean(self._returns)) if self._returns else None

    @property
    def average_episode_length(self) -> float | None:
        """Mean length in env steps; None before the first episode has ended."""
        return float(np.mean(self._lengths)) if self._lengths else None
