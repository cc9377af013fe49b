"""The parts of every check: its experiment, its deadline and its result."""

import dataclasses
import enum
import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from actorlearner.config.schema import Config
from actorlearner.environments.seeds import seed_for

if TYPE_CHECKING:
    from actorlearner.agents.make import AgentParts
    from actorlearner.environments.specs import EnvironmentSpecs
    from actorlearner.replay.layout import ReplayLayout


@dataclasses.dataclass
class CheckedExperiment:
    """The experiment that the machine is checked for.

    Its cached properties import TensorFlow, so each is computed only when a check needs it.

    Attributes:
      config: the configuration.
      run_dir: the run directory, or the directory that will hold it.
    """

    config: Config
    run_dir: Path

    @property
    def seed(self) -> int:
        """The seed of all randomness in the checks."""
        return seed_for(self.config.seed, "doctor", 0)

    @functools.cached_property
    def specs(self) -> "EnvironmentSpecs":
        """The specs of the environment."""
        from actorlearner.environments.specs import load_specs
        from actorlearner.process.tensorflow_setup import limit_tensorflow

        limit_tensorflow(threads=1)  # Before the environment, which may use TensorFlow itself.
        return load_specs(self.config.environment)

    @functools.cached_property
    def layout(self) -> "ReplayLayout":
        """The layout of replay."""
        from actorlearner.replay.layout import make_layout

        return make_layout(self.config, self.specs)

    @functools.cached_property
    def agent(self) -> "AgentParts":
        """The agent, on the CPU."""
        from actorlearner.agents.make import make_agent

        return make_agent(self.config, self.specs)


class Status(enum.Enum):
    """The outcome of a check, as it is printed."""

    OK = "ok"
    WARN = "warn"
    """Training would work, but more slowly or not under all circumstances."""
    FAIL = "FAIL"


class Result(NamedTuple):
    """The result of a check.

    Attributes:
      status: the outcome.
      detail: the facts found, or the problem and its repair.
    """

    status: Status
    detail: str


def ok(detail: str) -> Result:
    """Returns the result of a check that found no problem."""
    return Result(Status.OK, detail)


def warn(detail: str) -> Result:
    """Returns the result of a check that found a problem that does not prevent training."""
    return Result(Status.WARN, detail)


def fail(detail: str) -> Result:
    """Returns the result of a check that found a problem that prevents training."""
    return Result(Status.FAIL, detail)


@dataclasses.dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
      name: the name that is printed.
      make: makes the check; a module-level function, because it is pickled. An exception is a failure.
      repair: the advice if the check raises, hangs or crashes.
      deadline_s: seconds after which the check counts as hanging.
      needs: names of checks that must not fail before this one is made.
    """

    name: str
    make: Callable[[CheckedExperiment], Result]
    repair: str
    deadline_s: float = 120.0
    needs: tuple[str, ...] = ()
