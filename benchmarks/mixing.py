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

from actorlearner.environments.environment import EnvSteps
from actorlearner.records.formatting import plural
from actorlearner.replay.dataset import experience_dataset
from actorlearner.replay.layout import ReplayLayout, make_layout
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
    config = configuration()
    for environments, shared_goal in _GOALS_OF_SHARED.items():
        specs, steps = random_env_steps(config, environments, env_steps // environments)
        means = _means_of_batches(make_layout(config, specs), steps, environments, rounds_of_items)
        count = means.shape[1]
        # So many batches apart, the rows of two batches are one env step apart.
        pairs = (means[:, :-environments] + means[:, environments:]) / 2
        stored = np.concatenate([_numbers(step) for step in steps])
        one = _design_effects(means, 1, stored)
        two = _design_effects(pairs, 2, stored)
        many = _design_effects(means.mean(axis=1), count, stored)
        details[f"{environments} environments"] = {
            "one batch": one,
            "two batches": two,
            f"{count} batches": many,
        }
        actor = f"an actor with {plural(environments, 'environment')}"
        what = f"variance of a batch's mean, relative to independent draws, {actor}"
        rows.append(Row("mixing", what, None, _mean(one), _mean(one), _GOAL, False))
        what = f"the same for the mean of two batches, {environments} batches apart, {actor}"
        rows.append(Row("mixing", what, None, _mean(two), _mean(two), None, False))
        what = f"the same for the mean of the {count} batches that share their items, {actor}"
        rows.append(Row("mixing", what, None, _mean(many), _mean(many), shared_goal, False))
    return rows, details


def _means_of_batches(
    layout: ReplayLayout, steps: list[EnvSteps], environments: int, rounds_of_items: int
) -> npt.NDArray[np.float64]:
    """Writes env steps and samples batches; returns their means [rounds, batches of a round, numbers]."""
    count = layout.env_steps_per_item
    with replay_server() as server:
        filling.write(steps, layout.writer(reverb.Client(server.address), environments))
        batches = experience_dataset([server.address], layout, _BATCH, _BATCH).take(count * rounds_of_items)
        means = np.array([_numbers(layout.decode(batch)).mean(axis=0) for batch, _ in batches])
    return means.reshape(rounds_of_items, count, -1)


def _design_effects(
    means: npt.NDArray[np.float64], batches: int, stored: npt.NDArray[np.float64]
) -> list[float]:
    """Returns the design effect of each number that varies.

    Args:
      means: [..., numbers], each of so many batches.
      batches: how many.
      stored: [transitions, numbers], all that is in replay.
    """
    independent = stored.var(axis=0) / _BATCH
    varying = independent > 0
    deviations = means.reshape(-1, means.shape[-1]) - stored.mean(axis=0)
    variance = (deviations**2).mean(axis=0)[varying]
    return (variance / (independent[varying] / batches)).tolist()


def _numbers(transitions: Any) -> npt.NDArray[np.float64]:
    """Returns the observations and rewards, [transitions, numbers]."""
    observation, reward = np.asarray(transitions.observation), np.asarray(transitions.reward)
    return np.concatenate([observation, reward[:, None]], axis=1).astype(np.float64)


def _mean(values: list[float]) -> float:
    return float(np.mean(values))
