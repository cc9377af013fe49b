"""`experience`: batches of prioritised transitions, sequences and images; ours and TF-Agents'."""

import dataclasses
import sys
from typing import Any

import numpy as np
import reverb
import tensorflow as tf
from tf_agents.agents import data_converter
from tf_agents.replay_buffers import reverb_replay_buffer, reverb_utils
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step, trajectory

from actorlearner.agents.dqn import DqnConfig
from actorlearner.agents.make import make_agent
from actorlearner.config.schema import Config, LearnConfig, ReplayConfig
from actorlearner.environments.environment import EnvSteps
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.process.tensorflow_setup import limit_tensorflow
from actorlearner.replay.dataset import experience_dataset
from actorlearner.replay.experience_table import experience_table
from actorlearner.replay.layout import make_layout
from benchmarks.sampling import Sampler
from benchmarks.support import rounds, servers
from benchmarks.support.filling import write
from benchmarks.support.report import Row

_ACTIONS = 6
_ENVIRONMENTS = 8
_PER_CALL = 10
_GOAL = 1.0


@dataclasses.dataclass(frozen=True)
class Case:
    """What is sampled.

    Attributes:
      name: of the case.
      agent: declares the experience.
      observation: its spec.
      batch: units in a batch.
      env_steps: in replay.
    """

    name: str
    agent: DqnConfig
    observation: tf.TensorSpec
    batch: int
    env_steps: int

    @property
    def config(self) -> Config:
        """The configuration, without a rate limit."""
        replay = ReplayConfig(min_size=1, capacity=100_000)
        return Config(agent=self.agent, replay=replay, learn=LearnConfig(batch_size=self.batch))

    @property
    def specs(self) -> EnvironmentSpecs:
        """The specs of an environment with these observations."""
        action = tensor_spec.BoundedTensorSpec([], tf.int64, 0, _ACTIONS - 1)
        return EnvironmentSpecs(self.observation, action, time_step.time_step_spec(self.observation))

    @property
    def steps(self) -> int:
        """Time steps in one of TF-Agents' items: one more than env steps."""
        return (self.agent.sequence_length if self.agent.lstm_units else 1) + 1


_VECTOR = tf.TensorSpec([26], tf.float32, "observation")
_IMAGE = tf.TensorSpec([84, 84, 4], tf.uint8, "observation")
_CASES = (
    Case("transitions drawn by priority", DqnConfig(priority_exponent=0.6), _VECTOR, 256, 20_000),
    Case("sequences of 20 with the state of an LSTM of 64", DqnConfig(lstm_units=64), _VECTOR, 64, 20_000),
    Case("transitions of 84x84x4 images", DqnConfig(), _IMAGE, 32, 2_000),
)


def run(turns: int = 5, calls: int = 20) -> tuple[list[Row], dict[str, Any]]:
    """Measures decoded batches a second; `calls`: graph calls of ten batches in one round."""
    rows: list[Row] = []
    details: dict[str, Any] = {}
    for number, case in enumerate(_CASES):
        with servers.serving("benchmarks.experience", str(number)) as server:
            client = reverb.Client(server.address)
            layout = make_layout(case.config, case.specs)
            steps = _env_steps(case)
            write(steps, layout.writer(client, _ENVIRONMENTS))
            _write_stock(case, client, steps)
            dataset = experience_dataset([server.address], layout, case.batch, case.batch)
            ours = Sampler(dataset, layout.decode, _PER_CALL, calls)
            theirs = Sampler(*_stock(case, server.address), _PER_CALL, calls)
            details[case.name] = rounds.in_turn({"stock": theirs.rate, "ours": ours.rate}, turns)
        text = f"batches of {case.batch} a second: {case.name}; ratio"
        figures = rounds.compared(details[case.name], "ours", "stock")
        rows.append(Row("experience", text, *figures, _GOAL, True, ""))
    return rows, details


def _env_steps(case: Case) -> list[EnvSteps]:
    random = np.random.default_rng(0)
    count = case.env_steps // _ENVIRONMENTS
    shape = (count + 1, _ENVIRONMENTS, *case.observation.shape)
    if case.observation.dtype == tf.uint8:
        observations = random.integers(0, 255, shape, np.uint8)
    else:
        observations = random.normal(size=shape).astype(np.float32)
    ones, flags = np.ones(_ENVIRONMENTS, np.float32), np.zeros(_ENVIRONMENTS, np.bool_)
    zeros = np.zeros(_ENVIRONMENTS, np.int64)
    units = case.agent.lstm_units
    state = (np.zeros((_ENVIRONMENTS, units), np.float32),) * 2 if units else ()
    return [
        EnvSteps(
            observation=observations[i],
            first=flags,
            action=random.integers(0, _ACTIONS, _ENVIRONMENTS),
            reward=ones,
            discount=ones,
            next_observation=observations[i + 1],
            last=flags,
            policy_train_step=zeros,
            valid=~flags,
            policy_generation=zeros if units else (),
            policy_state=state,
        )
        for i in range(count)
    ]


def _stock_table(case: Case) -> reverb.Table:
    agent = make_agent(Config(agent=DqnConfig(layers=[4])), case.specs).agent
    exponent = case.agent.priority_exponent
    return reverb.Table(
        name="stock",
        sampler=reverb.selectors.Prioritized(exponent) if exponent else reverb.selectors.Uniform(),
        remover=reverb.selectors.Fifo(),
        max_size=100_000,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature=tensor_spec.add_outer_dim(agent.collect_data_spec),
    )


def _write_stock(case: Case, client: reverb.Client, steps: list[EnvSteps]) -> None:
    stride = case.agent.sequence_stride if case.agent.lstm_units else 1
    for i in range(_ENVIRONMENTS):
        observer = reverb_utils.ReverbAddTrajectoryObserver(client, "stock", case.steps, stride_length=stride)
        for step in steps:
            middle = np.asarray(time_step.StepType.MID, np.int32)
            reward, discount = np.asarray(step.reward[i]), np.asarray(step.discount[i])
            action = np.asarray(step.action[i])
            observer(trajectory.Trajectory(middle, step.observation[i], action, (), middle, reward, discount))
        observer.close()


def _stock(case: Case, address: str) -> tuple[tf.data.Dataset, Any]:
    agent = make_agent(Config(agent=DqnConfig(layers=[4])), case.specs).agent
    replay = reverb_replay_buffer.ReverbReplayBuffer(
        agent.collect_data_spec, sequence_length=case.steps, table_name="stock", server_address=address
    )
    dataset = replay.as_dataset(sample_batch_size=case.batch, num_steps=case.steps).prefetch(3)
    if case.steps > 2:
        return dataset, lambda batch: batch
    return dataset, data_converter.AsTransition(agent.data_context, squeeze_time_dim=True)


def _serve(port: int, number: int) -> None:
    limit_tensorflow(threads=1)
    case = _CASES[number]
    layout = make_layout(case.config, case.specs)
    servers.serve([experience_table(case.config, layout), _stock_table(case)], port)


if __name__ == "__main__":
    _serve(int(sys.argv[1]), int(sys.argv[2]))
