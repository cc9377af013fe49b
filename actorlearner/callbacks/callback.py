"""The base class of callbacks, and the events that they receive."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from actorlearner.config.schema import Config
from actorlearner.environments.info import average_info


@dataclasses.dataclass(frozen=True)
class Context:
    """The role and run that a callback belongs to.

    Attributes:
      role: learner, eval-actor, or collect-actor-<i>.
      run_id: the same in all roles of a run and after a resume.
      run_dir: the run directory of this role.
      config: the experiment.
    """

    role: str
    run_id: str
    run_dir: Path
    config: Config


@dataclasses.dataclass(frozen=True)
class Episode:
    """An episode of a collect actor that terminated or was truncated.

    Attributes:
      environment: index among the actor's environments, from 0.
      episode_return: undiscounted.
      length: in env steps.
      env_steps: taken by the actor so far, also before it was started again; on Slurm, in this time slice.
      train_step: train step of the policy that took the last env step; -1 for random actions.
      info: the metrics of `environment.info_metrics` by name; those without a value are left out.
    """

    environment: int
    episode_return: float
    length: int
    env_steps: int
    train_step: int
    info: Mapping[str, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """A recorded evaluation of the greedy policy.

    Attributes:
      train_step: train step of the policy's weights.
      env_steps: of all actors when the policy was published.
      returns: undiscounted, one per episode.
      lengths: in env steps, one per episode.
      info: the metrics of `environment.info_metrics` by name, one value per episode; None without a value.
    """

    train_step: int
    env_steps: int
    returns: Sequence[float]
    lengths: Sequence[int]
    info: Mapping[str, Sequence[float | None]] = dataclasses.field(default_factory=dict)

    @property
    def average_return(self) -> float:
        """Mean over the episodes."""
        return sum(self.returns) / len(self.returns)

    @property
    def average_info(self) -> dict[str, float | None]:
        """Mean of each metric of `info` over the episodes that have it; None if none has."""
        return average_info(self.info)


@dataclasses.dataclass(frozen=True)
class Publication:
    """Policy variables that the replay server accepted from the learner.

    Attributes:
      train_step: train step of the variables.
      generation: number of the learner that published them, from 0; each start of a learner gets a new one.
    """

    train_step: int
    generation: int


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint of the learner.

    Attributes:
      train_step: train step of the checkpoint.
      path: accepted by `actorlearner rollout`.
    """

    train_step: int
    path: Path


class Callback:
    """Base class of callbacks. The hooks are called one after another, on a thread of their own.

    Each role makes one instance of each callback after it has connected to the run. Collect actors report
    episodes, the eval actor reports evaluations, the learner reports publications and checkpoints. No role
    waits for a hook: up to 1,000 events are queued, and further events are dropped with a warning. An
    exception in a hook is logged each time, with a warning the first time, and the run continues.
    """

    def __init__(self, context: Context) -> None:
        """Runs before the role starts its work and blocks it; an exception ends the run."""
        self.context = context

    def on_episode(self, episode: Episode) -> None:
        """Called after each episode, possibly thousands of times per second."""

    def on_evaluation(self, evaluation: Evaluation) -> None:
        """Called after an evaluation was recorded."""

    def on_publish(self, publication: Publication) -> None:
        """Called after policy variables were published."""

    def on_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Called after a checkpoint was written."""

    def close(self) -> None:
        """Called when the role finishes, or is stopped, but not when it fails.

        Must return within 30 s, or within 1 s after a signal.
        """
