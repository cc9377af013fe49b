"""What is checked, and what several checks need of it."""

import dataclasses
import functools
from pathlib import Path
from typing import TYPE_CHECKING

from actorlearner.config.schema import Config
from actorlearner.environments.seeds import seed_for

if TYPE_CHECKING:
    from actorlearner.agents.make import AgentParts
    from actorlearner.environments.specs import EnvironmentSpecs
    from actorlearner.replay.layout import ReplayLayout


@dataclasses.dataclass
class Subject:
    """An experiment that is to be run here.

    What is derived is made where it is first needed, because TensorFlow comes with it.

    Attributes:
      config: the experiment.
      run_dir: where its run directory is, or those of all runs are to be.
    """

    config: Config
    run_dir: Path

    @property
    def seed(self) -> int:
        """For everything random in the checks."""
        return seed_for(self.config.seed, "doctor", 0)

    @functools.cached_property
    def specs(self) -> "EnvironmentSpecs":
        """The environment's."""
        from actorlearner.environments.specs import load_specs
        from actorlearner.process.devices import use_cpu

        use_cpu(threads=1)  # Before the environment, which may use TensorFlow itself.
        return load_specs(self.config.environment)

    @functools.cached_property
    def layout(self) -> "ReplayLayout":
        """That of replay."""
        from actorlearner.replay.layout import make_layout

        return make_layout(self.config, self.specs)

    @functools.cached_property
    def agent(self) -> "AgentParts":
        """The agent, on the CPU."""
        from actorlearner.agents.make import make_agent

        return make_agent(self.config, self.specs)
