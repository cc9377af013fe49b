"""An environment that may fail without harm: its answers are checked, and after a fault it is made anew."""

import functools
import logging
import math
from collections.abc import Callable

from actorlearner.config.schema import EnvironmentConfig
from actorlearner.environments.environment import Environment, Nest, Step
from actorlearner.environments.finite import all_finite
from actorlearner.environments.load import load_environment
from actorlearner.environments.seeds import seed_for
from actorlearner.environments.wrapper import Wrapper
from actorlearner.errors import RunError, one_line
from actorlearner.records.notify import warn

_log = logging.getLogger(__name__)

_FORGIVEN_AFTER = 1_000
"""Good env steps in a row, or one whole episode, after which faults are counted anew."""


class GuardedEnvironment(Wrapper):
    """Passes on what an environment answers only if it can be used.

    A fault is an exception from the environment, and a NaN or an infinite number in an action, an
    observation, a reward or a discount. Each is logged and counted.

    Attributes:
      observation_spec, action_spec: those of the environment.
      faults: how many there were.
    """

    def __init__(self, make: Callable[[int], Environment], title: str, max_faults: int) -> None:
        """Makes the environment.

        Args:
          make: makes it; called with 0, and with the number of the fault after each.
          title: names it in messages, as in "environment 3".
          max_faults: faults in a row after which there is no next attempt.
        """
        super().__init__(make(0))
        self._make = make
        self._title = title
        self._max_faults = max_faults
        self.faults = 0
        self._in_a_row = 0
        self._good_steps = 0

    def reset(self) -> Nest:
        """Starts an episode and returns its first observation, from a new environment if it must.

        Raises:
          RunError: the environment failed too often in a row.
        """
        while True:
            try:
                observation = self._environment.reset()
            except Exception as error:  # The environment is somebody else's code.
                self._replace(f"reset raised {one_line(error)}")
                continue
            if all_finite(observation):
                return observation
            self._replace("reset returned an observation that is not finite")

    def step(self, action: Nest) -> Step | None:
        """Takes one env step.

        Returns:
          What came of it, or None after a fault: then there is a new environment, and `reset` comes next.

        Raises:
          RunError: the environment failed too often in a row.
        """
        if not all_finite(action):
            self._replace(f"the policy chose an action that is not finite: {action}")
            return None
        try:
            step = self._environment.step(action)
        except Exception as error:  # The environment is somebody else's code.
            self._replace(f"step raised {one_line(error)}")
            return None
        wrong = wrong_answer(step)
        if wrong:
            self._replace(wrong)
            return None
        self._good_steps += 1
        if step.last or self._good_steps >= _FORGIVEN_AFTER:
            self._in_a_row = self._good_steps = 0
        return step

    def _replace(self, reason: str) -> None:
        """Counts a fault and makes the environment anew."""
        self.faults += 1
        self._in_a_row += 1
        self._good_steps = 0
        if self._in_a_row > self._max_faults:
            raise RunError(
                f"{self._title} failed {self._in_a_row} times in a row (environment.max_faults: "
                f"{self._max_faults}), at last: {reason}"
            )
        _log.warning(
            "%s: %s; its episode is given up and it is made anew (fault %d in a row, %d are allowed)",
            self._title,
            reason,
            self._in_a_row,
            self._max_faults,
        )
        try:
            self._environment.close()
        except Exception as error:  # It is broken already.
            _log.info("%s: close raised %s", self._title, one_line(error))
        try:
            self._environment = self._make(self.faults)
        except Exception as error:
            self._replace(f"it cannot be made anew: {one_line(error)}")


@functools.cache
def _say_once(line: str) -> None:
    warn(line)


def load_guarded(
    config: EnvironmentConfig, seed: int, role: str, index: int, environment: int, life: int = 0
) -> GuardedEnvironment:
    """Loads the environment of a role; one that is made anew continues with other random numbers.

    Args:
      config: which environment.
      seed: the run's seed.
      role: the role's name.
      index: which of the role's processes, from 0.
      environment: which of its environments, from 0.
      life: how often the role was started in this run before.

    Raises:
      ConfigurationError: the environment cannot be loaded.
    """

    def make(attempt: int) -> Environment:
        stream = role if attempt == 0 else f"{role}, after fault {attempt}"
        warn: Callable[[str], None] = _log.info
        if index == environment == 0:  # One of all environments says what holds for all.
            warn = _say_once
        return load_environment(config, seed_for(seed, stream, index, environment, life), warn)

    return GuardedEnvironment(make, f"environment {environment}", config.max_faults)


def wrong_answer(step: Step) -> str:
    """What is wrong with an answer; empty if nothing is."""
    if not all_finite(step.observation):
        return "step returned an observation that is not finite"
    if not math.isfinite(step.reward):
        return f"step returned the reward {step.reward}"
    if not 0.0 <= step.discount <= 1.0:
        return f"step returned the discount {step.discount}"
    return ""
