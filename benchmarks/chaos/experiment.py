"""The configuration of a run under chaos."""

import dataclasses
import math
from pathlib import Path

from actorlearner.config.schema import Config, EnvironmentConfig
from actorlearner.errors import ConfigurationError
from actorlearner.process.cores import collect_actors
from benchmarks.chaos import numbered

_CHECKPOINTS = 40
"""The minimum number of checkpoints of the learner and of replay in a run without harm."""

_MAX_EPISODES = 2
"""The maximum number of episodes of an evaluation: returns of numbered environments mean nothing."""

_ROOM = 10
"""The minimum capacity of replay, as a multiple of the env steps of an undisturbed run.

Train steps that are rolled back need additional env steps.
"""


def under_chaos(config: Config, steps: Path, duration_s: float) -> Config:
    """Returns the configuration with numbered environments, slow enough to last.

    Undisturbed, all train steps would take `duration_s`, so that harm finds the run at work. Nothing is
    removed from replay for want of room, and checkpoints come often enough for a run that dies so often.

    Args:
      config: the experiment.
      steps: the directory of the logs of env steps.
      duration_s: of the harm.

    Raises:
      ConfigurationError: `replay.updates_per_env_step` is null, so slow environments would not slow training.
    """
    if config.replay.updates_per_env_step is None:
        problem = "replay.updates_per_env_step: null cannot work with chaos; allowed: a number"
        raise ConfigurationError([problem])
    learn, replay = config.learn, config.replay
    env_steps = learn.train_steps / config.replay.updates_per_env_step + replay.min_size
    interval_s = duration_s / env_steps * collect_actors(config.collect)
    replay_interval_s = min(replay.checkpoint_interval_s or math.inf, duration_s / _CHECKPOINTS)
    learner_interval = min(learn.checkpoint_interval, math.ceil(learn.train_steps / _CHECKPOINTS))
    capacity = max(replay.capacity, math.ceil(_ROOM * env_steps))
    episodes = min(config.evaluate.episodes, _MAX_EPISODES)
    return dataclasses.replace(
        config,
        environment=_numbered(config.environment, steps, interval_s),
        replay=dataclasses.replace(replay, capacity=capacity, checkpoint_interval_s=replay_interval_s),
        learn=dataclasses.replace(learn, checkpoint_interval=learner_interval),
        evaluate=dataclasses.replace(config.evaluate, episodes=episodes),
    )


def _numbered(environment: EnvironmentConfig, steps: Path, interval_s: float) -> EnvironmentConfig:
    arguments = {
        "directory": str(steps),
        "interval_s": interval_s,
        "acts_as": dataclasses.asdict(environment),
    }
    return EnvironmentConfig(suite=numbered.SUITE, name="", kwargs=arguments)


def describe(config: Config) -> str:
    """Returns a line about the changes of `under_chaos`."""
    rate = collect_actors(config.collect) / config.environment.kwargs["interval_s"]
    return (
        f"numbered environments, {rate:.1f} env steps/s; checkpoints every "
        f"{config.learn.checkpoint_interval:,} train steps and {config.replay.checkpoint_interval_s:.0f} s"
    )
