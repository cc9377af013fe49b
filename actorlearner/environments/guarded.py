"""Environments that survive faults: answers are checked, and a failed environment is replaced."""

import contextlib
import functools
import logging
import math
from collections.abc import Callable

import numpy as np

from actorlearner.config.schema import EnvironmentConfig
from actorlearner.environments.environment import Environment, Nest, Step, Wrapper
from actorlearner.environments.finite import all_finite
from actorlearner.environments.load import load_environment
from actorlearner.environments.process_environment import ProcessEnvironment
from actorlearner.environments.seeds import seed_for
from actorlearner.errors import RunError, one_line
from actorlearner.process.heartbeat import LONG_PATIENCE_S, beat
from actorlearner.records.notify import warn

_log = logging.getLogger(__name__)

_FLOAT32_MAX = float(np.finfo(np.float32).max)


class GuardedEnvironment(Wrapper):
    """Wraps an environment and replaces it after a fault.

    A fault is an exception from the environment, a NaN or infinity in an action, an observation or a
    reward (in float32), or a discount outside [0, 1]. Each fault is logged and counted. The reward -inf is no
    fault: it means that the environment rejected the action.

    Attributes:
      observation_spec, action_spec: specs of the environment.
      faults: number of faults so far.
    """

    def __init__(
        self,
        make: Callable[[int], Environment],
        title: str,
        max_faults: int,
        forgiven_after: int | None = None,
    ) -> None:
        """Makes the environment.

        Args:
          make: returns a new environment; called with 0, then with the number of faults after each fault.
          title: name in messages, such as "environment 3".
          max_faults: number of faults in a row that are survived; an episode without one resets the count.
          forgiven_after: env steps without a fault that reset the count, too; None: only an episode does.
        """
        super().__init__(make(0))
        self._make = make
        self._title = title
        self._max_faults = max_faults
        self._forgiven_after = forgiven_after
        self.faults = 0
        self._in_a_row = 0
        self._good_steps = 0

    def reset(self) -> Nest:
        """Starts an episode and returns its first observation, if necessary from a new environment.

        Raises:
          RunError: more than `max_faults` faults in a row.
        """
        if self._good_steps:  # The episode before was complete, or its player cut it off.
            self._in_a_row = self._good_steps = 0
        while True:
            try:
                observation = self._environment.reset()
            except Exception as error:  # User code may raise anything.
                self._replace(f"reset raised {one_line(error)}", error)
                continue
            if all_finite(observation):
                return observation
            self._replace("reset returned an observation that is not finite")

    def step(self, action: Nest) -> Step | None:
        """Takes one env step.

        Returns:
          The environment's answer, or None after a fault; `reset` must follow.

        Raises:
          RunError: more than `max_faults` faults in a row.
        """
        if not all_finite(action):
            self._replace(f"the policy chose an action that is not finite: {action}")
            return None
        try:
            step = self._environment.step(action)
        except Exception as error:  # User code may raise anything.
            self._replace(f"step raised {one_line(error)}", error)
            return None
        if step.reward == -math.inf:
            step = step._replace(reward=0.0, rejected=True)
        if problem := problem_of(step):
            self._replace(problem)
            return None
        self._good_steps += 1
        if self._good_steps == self._forgiven_after:
            self._in_a_row = 0
        return step

    def send(self, action: Nest) -> None:
        """Starts an env step, if the environment runs in another process; `step` must follow."""
        if isinstance(self._environment, ProcessEnvironment) and all_finite(action):
            with contextlib.suppress(RunError):  # `step` will raise it again.
                self._environment.send(action)

    def begin_close(self) -> None:
        """Starts to close the environment, if it runs in another process; `close` must follow."""
        if isinstance(self._environment, ProcessEnvironment):
            self._environment.begin_close()

    def close(self) -> None:
        """Frees the simulator; nothing depends on it any more, so that an exception is only logged."""
        try:
            self._environment.close()
        except Exception as error:  # User code may raise anything.
            _log.info("%s: close raised %s", self._title, one_line(error))

    def _replace(self, reason: str, error: Exception | None = None) -> None:
        """Counts a fault and replaces the environment; logs the traceback of the first fault only."""
        self.faults += 1
        self._in_a_row += 1
        self._good_steps = 0
        if self._in_a_row > self._max_faults:
            raise RunError(
                f"{self._title} failed {self._in_a_row} times in a row (environment.max_faults: "
                f"{self._max_faults}), most recently: {reason}"
            )
        _log.warning(
            "%s: %s; its episode is given up and the environment is replaced (fault %d in a row, %d allowed)",
            self._title,
            reason,
            self._in_a_row,
            self._max_faults,
            exc_info=error if self.faults == 1 else None,
        )
        self.close()
        try:
            self._environment = self._make(self.faults)
        except Exception as again:
            self._replace(f"it cannot be replaced: {one_line(again)}", again)


@functools.cache
def _warn_once(line: str) -> None:
    warn(line)


def load_guarded(
    config: EnvironmentConfig,
    seed: int,
    role: str,
    index: int,
    environment: int,
    restart: int = 0,
    purpose: str = "",
    own_process: bool = False,
    forgiven_after: int | None = None,
) -> GuardedEnvironment:
    """Loads an environment of a role; its replacements after faults have other seeds.

    Args:
      config: the environment section of the configuration.
      seed: the run's seed.
      role: the role's name. The environment's seed depends on `role`, `index`, `environment`, `restart` and
        `purpose`, see `seed_for`.
      index: of the role's process, from 0.
      environment: index among the process's environments, from 0.
      restart: as for `seed_for`.
      purpose: what the environment is for, if the role has others with the same numbers.
      own_process: whether the environment runs in a process of its own.
      forgiven_after: as for GuardedEnvironment.

    Raises:
      ConfigurationError: the environment cannot be loaded.
      RunError: its own process has died.
    """
    first_stream = f"{role}, {purpose}" if purpose else role

    def make(faults: int) -> Environment:
        beat(f"making environment {environment}", patience_s=LONG_PATIENCE_S)
        stream = first_stream if faults == 0 else f"{first_stream}, after fault {faults}"
        report: Callable[[str], None] = _log.info
        if index == environment == 0:  # The warning holds for all environments: only the first reports it.
            report = _warn_once
        own_seed = seed_for(seed, stream, index, environment, restart)
        if own_process:
            return ProcessEnvironment(config, own_seed, role, index)
        return load_environment(config, own_seed, report, role, index)

    return GuardedEnvironment(make, f"environment {environment}", config.max_faults, forgiven_after)


def problem_of(step: Step) -> str:
    """Returns what is wrong with an environment's answer; empty if nothing is."""
    if not all_finite(step.observation):
        return "step returned an observation that is not finite"
    if not abs(step.reward) <= _FLOAT32_MAX and step.reward != -math.inf:  # -inf: it rejected the action.
        return f"step returned the reward {step.reward}, which is not finite in float32"
    if not 0.0 <= step.discount <= 1.0:
        return f"step returned the discount {step.discount}"
    return ""
