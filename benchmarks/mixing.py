"""`mixing`: how far from independent uniform draws the sampled batches are.

An item holds transitions that follow each other in time, and all batches dealt from the same items share
them. The mean of two batches whose rows are one env step apart shows whether batches follow the environments
through time. The measure is the design effect of survey statistics (Kish, Survey Sampling, 1965): the
variance of a sample's mean, divided by the variance of the mean of as many independent draws. It is 1 for
independent draws, and 2 where half as many independent draws would be as informative.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import reverb

from actorlearner.config.schema import Config
from actorlearner.environments.environment import EnvSteps
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.replay.dataset import experience_dataset
from actorlearner.replay.layout import make_layout
from benchmarks.support import filling
from benchmarks.support.halfcheetah import configuration, random_env_steps
from benchmarks.support.report import Row
from benchmarks.support.servers import replay_server

_BATCH = 256
_GOAL = 1.1
"""The highest design effect of a single batch, in which no two rows come from the same item."""

_GOALS_OF_SHARED = {1: 12.0, 8: 4.5}
"""The highest design effect of all batches dealt from the same items, by environments of the actor.

Each item is a stretch of episodes, a longer one where a single environment fills it. These bounds show when
mixing becomes worse than it was."""


def run(env_steps: int = 20_000, rounds_of_items: int = 300) -> tuple[list[Row], dict[str, Any]]:
    """Samples what actors with one and with eight environments wrote: observations and rewards.

    Args:
      env_steps: in replay.
      rounds_of_items: how often all batches of the same items are taken.
    """
    rows: list[Row] = []
    details: dict[str, Any] = {}
    for environments, shared_goal in _GOALS_OF_SHARED.items():
        config = configuration()
        specs, steps = random_env_steps(config, environments, env_steps // environments)
        one, two, many, count = _design_effects(config, specs, steps, environments, rounds_of_items)
        details[f"{environments} environments"] = {
            "one batch": one,
            "two batches": two,
            f"{count} batches": many,
        }
        actor = f"an actor with {environments} environment{'s' if environments > 1 else ''}"
        what = f"variance of a batch's mean, relative to independent draws, {actor}"
        rows.append(Row("mixing", what, None, _mean(one), _mean(one), _GOAL, False))
        what = f"the same for the mean of two batches, {environments} batches apart, {actor}"
        rows.append(Row("mixing", what, None, _mean(two), _mean(two), None, False))
        what = f"the same for the mean of the {count} batches that share their items, {actor}"
        rows.append(Row("mixing", what, None, _mean(many), _mean(many), shared_goal, False))
    return rows, details


def _design_effects(
    config: Config, specs: EnvironmentSpecs, steps: list[EnvSteps], environments: int, rounds_of_items: int
) -> tuple[list[float], list[float], list[float], int]:
    """Returns the design effects of all numbers for one batch, for two, and for all from the same items.

    The two batches are `environments` batches apart, so that their rows are one env step apart.

    Returns:
      The three lists of design effects, and the number of batches that share their items.
    """
    layout = make_layout(config, specs)
    with replay_server() as server:
        filling.write(steps, layout.writer(reverb.Client(server.address), environments))
        count = layout.env_steps_per_item
        dataset = experience_dataset([server.address], layout, _BATCH, _BATCH)
        means = np.array(
            [
                _numbers(*_observation_and_reward(layout.decode(batch))).mean(axis=0)
                for batch, _ in dataset.take(count * rounds_of_items)
            ]
        )
    stored = np.concatenate([_numbers(*_observation_and_reward(step)) for step in steps])
    independent = stored.var(axis=0) / _BATCH
    varying = independent > 0
    expected = stored.mean(axis=0)

    def design_effect(of_means: npt.NDArray[np.float64], batches: int) -> list[float]:
        variance = ((of_means - expected) ** 2).mean(axis=0)[varying]
        return (variance / (independent[varying] / batches)).tolist()

    rounds = means.reshape(rounds_of_items, count, -1)
    pairs = (rounds[:, :-environments] + rounds[:, environments:]) / 2
    return (
        design_effect(means, 1),
        design_effect(pairs.reshape(-1, means.shape[1]), 2),
        design_effect(rounds.mean(axis=1), count),
        count,
    )


def _observation_and_reward(transitions: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    return np.asarray(transitions.observation), np.asarray(transitions.reward)


def _numbers(observation: npt.NDArray[Any], reward: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    return np.concatenate([observation, reward[:, None]], axis=1).astype(np.float64)


def _mean(values: list[float]) -> float:
    return float(np.mean(values))
