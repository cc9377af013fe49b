"""A replay server under test, and env steps that can be told apart."""

import dataclasses
from typing import Any

import numpy as np
import reverb
import tensorflow as tf
import tree
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step

from actorlearner.agents.experience import StoredTransition
from actorlearner.config.schema import Config
from actorlearner.environments.environment import EnvSteps
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.replay.connection import ReplayServer
from actorlearner.replay.layout import ReplayLayout
from actorlearner.replay.status import ReplayStatus
from actorlearner.replay.trajectories import TrajectoryLayout
from actorlearner.replay.writer import ReplayWriter
from benchmarks.chaos.store import decode_items

LONG_S = 30.0
SHORT_S = 0.3
"""How long something that must not happen is given to happen."""

TIMEOUT_S = 10

OBSERVATION = {
    "vector": tf.TensorSpec([3], tf.float32),
    "image": tensor_spec.BoundedTensorSpec([2, 2, 1], tf.uint8, 0, 255),
}
SPECS = EnvironmentSpecs(
    OBSERVATION,
    tensor_spec.BoundedTensorSpec([2], tf.float32, -1.0, 1.0),
    time_step.time_step_spec(OBSERVATION),
)


def with_replay(config: Config, **replay: Any) -> Config:
    return dataclasses.replace(config, replay=dataclasses.replace(config.replay, **replay))


def observation(numbers: np.ndarray) -> dict[str, np.ndarray]:
    number = numbers.astype(np.float32)
    pixel = (numbers % 255).astype(np.uint8)[:, None, None, None]
    return {
        "vector": np.stack([number, number + 0.25, number + 0.5], axis=1),
        "image": np.broadcast_to(pixel, (len(number), 2, 2, 1)),
    }


def numbered(numbers: np.ndarray) -> EnvSteps:
    """Env steps that carry their number in every part, in episodes of one step each."""
    number = numbers.astype(np.float32)
    following = observation(numbers)
    return EnvSteps(
        observation=observation(numbers),
        first=np.ones(len(numbers), np.bool_),
        action=np.stack([number, -number], axis=1),
        reward=number,
        discount=np.where(number % 7 == 0, 0.0, 1.0).astype(np.float32),
        next_observation={"vector": following["vector"] + 1.0, "image": following["image"] + 1},
        last=np.ones(len(numbers), np.bool_),
        policy_train_step=numbers // 10,
        valid=np.ones(len(numbers), np.bool_),
    )


def stored(steps: EnvSteps) -> StoredTransition:
    """The transitions of single env steps."""
    return StoredTransition(
        steps.observation,
        steps.action,
        steps.reward,
        steps.discount,
        steps.next_observation,
        steps.policy_train_step,
    )


@dataclasses.dataclass
class Replay:
    """A replay server with shorthands to write and to look into its experience table."""

    client: reverb.Client
    address: str
    layout: ReplayLayout

    def write(self, count: int, environments: int = 8, first: int = 0) -> ReplayWriter:
        writer = self.layout.writer(self.client, environments)
        for start in range(first, first + count, environments):
            writer.write(numbered(np.arange(start, start + environments)))
            assert writer.flush(LONG_S)
        return writer

    def fill(self, count: int) -> None:
        assert self.write(count).close(LONG_S)

    def status(self) -> ReplayStatus:
        return ReplayServer(self.client, self.layout).status(TIMEOUT_S)

    def items(self) -> list[Any]:
        """The data of each item in the table, sampled until all of them were seen."""
        size = self.status().size // self.layout.env_steps_per_item
        items: dict[int, Any] = {}
        while len(items) < size:
            for sample in self.client.sample(
                self.layout.table, 100, emit_timesteps=False, unpack_as_table_signature=True
            ):
                items[sample.info.key] = sample.data
        return list(items.values())

    def transitions(self) -> StoredTransition:
        """All transitions in the table, in no particular order."""
        items = tree.map_structure(lambda *leaves: tf.constant(np.stack(leaves)), *self.items())
        return tree.map_structure(np.asarray, decode_items(items, self.layout))

    def numbers(self) -> list[int]:
        """The numbers of the transitions in the table, after checking all values of each."""
        found = self.transitions()
        expected = stored(numbered(found.reward.astype(np.int64)))
        if isinstance(self.layout, TrajectoryLayout):  # It does not keep the policy's train step.
            expected = expected._replace(policy_train_step=np.full_like(expected.policy_train_step, -1))
        tree.map_structure(np.testing.assert_array_equal, found, expected)
        return sorted(found.reward.astype(int).tolist())


def sample_until_blocked(replay: Replay) -> int:
    """Samples items until the rate limiter blocks for a while."""
    specs = replay.layout.item_specs
    dataset = reverb.TrajectoryDataset(
        replay.address,
        replay.layout.table,
        dtypes=tree.map_structure(lambda spec: spec.dtype, specs),
        shapes=tree.map_structure(lambda spec: spec.shape, specs),
        max_in_flight_samples_per_worker=1,
        num_workers_per_iterator=1,
        rate_limiter_timeout_ms=round(SHORT_S * 1000),
    )
    return sum(1 for _ in dataset)


def sample_until_inserted(replay: Replay, inserts: int) -> None:
    """Samples items one by one until the rate limiter has accepted so many transitions."""
    while replay.status().inserts < inserts:
        list(replay.client.sample(replay.layout.table, 1))
