"""What a callback is, and what it is told."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from actorlearner.config.schema import Config


@dataclasses.dataclass(frozen=True)
class Context:
    """Where a callback is called.

    Attributes:
      role: the process: learner, eval-actor, or collect-actor-<i>.
      run_id: of the run, the same in all its roles and after a resume.
      run_dir: the run directory of this role.
      config: the experiment.
    """

    role: str
    run_id: str
    run_dir: Path
    config: Config


@dataclasses.dataclass(frozen=True)
class Episode:
    """An episode that ended, or was truncated, in an environment of a collect actor.

    Attributes:
      environment: which of the actor's environments, counted from 0.
      episode_return: undiscounted.
      length: in env steps.
      env_steps: that this process of the actor has taken so far.
      train_step: of the policy that took the last env step; -1 for random actions.
    """

    environment: int
    episode_return: float
    length: int
    env_steps: int
    train_step: int


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """An evaluation of the greedy policy, once it is recorded.

    Attributes:
      train_step: of the policy.
      env_steps: of all actors when it was published.
      returns: undiscounted, of each episode.
      lengths: of each episode, in env steps.
    """

    train_step: int
    env_steps: int
    returns: Sequence[float]
    lengths: Sequence[int]

    @property
    def average_return(self) -> float:
        """The mean over episodes."""
        return sum(self.returns) / len(self.returns)


@dataclasses.dataclass(frozen=True)
class Publication:
    """Policy variables that the replay server has taken from the learner, for actors to act with.

    Attributes:
      train_step: after which these were the variables.
      generation: which of the run's learners they are from, counted from 0.
    """

    train_step: int
    generation: int


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A checkpoint of the learner that is written and whole.

    Attributes:
      train_step: at which it was written.
      path: as `actorlearner rollout` takes it.
    """

    train_step: int
    path: Path


class Callback:
    """Base class: overrides are called, one after the other, on a thread of their own.

    Each role makes one instance of each callback, once it is connected to the run: a collect actor is told of
    episodes, the eval actor of evaluations, the learner of publications and checkpoints. No role waits for
    a callback: while one is slow up to 1,000 events wait for it, and what comes then is left out, which is
    said. What a hook raises is said once and logged each time; the run goes on.
    """

    def __init__(self, context: Context) -> None:
        """Is called before the role begins its work, which waits for it; what this raises ends the run."""
        self.context = context

    def on_episode(self, episode: Episode) -> None:
        """An episode has ended. May be called thousands of times a second."""

    def on_evaluation(self, evaluation: Evaluation) -> None:
        """An evaluation was recorded."""

    def on_publish(self, publication: Publication) -> None:
        """Policy variables were published."""

    def on_checkpoint(self, checkpoint: Checkpoint) -> None:
        """A checkpoint was written."""

    def close(self) -> None:
        """The role ends: 30 s are left, after a signal 1 s."""
