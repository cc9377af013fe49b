"""What is consumed once, through a real server: nothing twice, nothing too old, all in iterations."""

import gc
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import reverb
import tensorflow as tf
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step

from actorlearner.agents.configuration import load_config
from actorlearner.agents.experience import Experience, Iteration
from actorlearner.agents.make import make_agent
from actorlearner.agents.ppo import PpoConfig
from actorlearner.agents.ppo_agent import PolicyInfo
from actorlearner.agents.recurrent_ppo_agent import STATE, RecurrentPpoAgent
from actorlearner.config.schema import Config, LearnConfig
from actorlearner.environments.environment import EnvSteps
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.errors import ConfigurationError
from actorlearner.learning.group import LearnerGroup
from actorlearner.learning.iteration_graph import IterationGraph, check_replicas
from actorlearner.process.stop import Stop
from actorlearner.records.run_directory import RunDirectory
from actorlearner.records.summaries import Summaries
from actorlearner.replay.dataset import experience_dataset
from actorlearner.replay.experience_table import experience_table
from actorlearner.replay.layout import make_layout
from actorlearner.roles import learner
from tests.support.processes import run_script
from tests.support.replay import LONG_S

LENGTH, FRAGMENTS, ENVIRONMENTS, BATCH, EPOCHS = 4, 6, 2, 8, 3
STEPS = EPOCHS * LENGTH * FRAGMENTS // BATCH
OBSERVATION = tf.TensorSpec([1], tf.float32)
SPECS = EnvironmentSpecs(
    OBSERVATION,
    tensor_spec.BoundedTensorSpec([], tf.int64, 0, 1),
    time_step.time_step_spec(OBSERVATION),
)

ON_TWO_REPLICAS = """
import os
import sys
from pathlib import Path

from actorlearner.learning.strategy import make_strategy
from tests.learning import test_iteration_graph as tests

strategy = make_strategy("mirrored:2", tests.BATCH)
tests.ENVIRONMENTS = 1
run = tests.Run(tests.config_of(lag=0), int(sys.argv[1]), Path(sys.argv[2]), strategy)
run.collect(tests.FRAGMENTS, train_step=0)
run.graph.train(tests.STEPS)
run.collect(1, train_step=0)
numbers = run.collect(tests.FRAGMENTS, train_step=tests.STEPS)
run.graph.train(tests.STEPS)
print(sorted(run.trained[-2] + run.trained[-1]) == numbers, run.graph.dropped, flush=True)
os._exit(0)
"""
"""In a process of its own, because logical devices can be made only before TensorFlow is used."""


def config_of(lag: int, lstm_units: int | None = None, xla: bool = False) -> Config:
    agent = PpoConfig(
        env_steps_per_iteration=LENGTH * FRAGMENTS,
        fragment_length=LENGTH,
        epochs=EPOCHS,
        max_policy_lag=lag,
        lstm_units=lstm_units,
        actor_layers=[4],
        value_layers=[4],
    )
    return Config(agent=agent, learn=LearnConfig(batch_size=BATCH, xla=xla))


class Run:
    """A replay server, an actor that numbers its env steps, and a training graph that remembers them."""

    def __init__(
        self,
        config: Config,
        port: int,
        directory: Path,
        strategy: tf.distribute.Strategy | None = None,
    ) -> None:
        layout = make_layout(config, SPECS)
        self.server = reverb.Server([experience_table(config, layout)], port)
        self.client = reverb.Client(f"localhost:{port}")
        self.layout = layout
        self.config = config
        self.strategy = strategy or tf.distribute.get_strategy()
        self.directory = directory
        self.writer = layout.writer(self.client, ENVIRONMENTS)
        self.written = 0
        self.trained: list[list[int]] = []
        self.graph = self.make_training_graph()

    def make_training_graph(self) -> IterationGraph:
        with self.strategy.scope():
            parts = make_agent(self.config, SPECS)
        prepare = parts.agent.prepare
        trained = self.trained

        # TensorFlow keeps it for good: it must not hold this object, and so the samplers.
        def remember(numbers: np.ndarray) -> None:
            trained.append(sorted(numbers.ravel().astype(int).tolist()))

        def seen(sequences):
            tf.numpy_function(remember, [sequences.reward], [])
            return prepare(sequences)

        parts.agent.prepare = seen
        return IterationGraph(
            parts,
            lambda: experience_dataset([f"{self.client._server_address}"], self.layout, 1, 1),
            self.layout,
            self.config.learn,
            group=LearnerGroup(self.strategy, Stop()),
            writer=Summaries(self.directory).writer,
        )

    def collect(self, fragments: int, train_step: int, generation: int = 0) -> list[int]:
        """Writes fragments of each environment; returns the numbers of their env steps."""
        numbers = []
        units = self.config.agent.lstm_units
        state = {STATE: (np.ones((ENVIRONMENTS, units), np.float32),) * 2} if units else ()
        for _ in range(fragments * LENGTH):
            number = np.arange(self.written, self.written + ENVIRONMENTS)
            self.written += ENVIRONMENTS
            numbers += number.tolist()
            flags, zeros = np.zeros(ENVIRONMENTS, np.bool_), np.zeros(ENVIRONMENTS, np.int64)
            self.writer.write(
                EnvSteps(
                    observation=number[:, None].astype(np.float32),
                    first=flags,
                    action=zeros,
                    reward=number.astype(np.float32),
                    discount=np.ones(ENVIRONMENTS, np.float32),
                    next_observation=number[:, None].astype(np.float32),
                    last=flags,
                    policy_train_step=zeros + train_step,
                    valid=~flags,
                    policy_generation=zeros + generation,
                    policy_state=state,
                    policy_info=PolicyInfo(zeros, np.full(ENVIRONMENTS, np.log(0.5), np.float32)),
                )
            )
        assert self.writer.flush(LONG_S, pending_items=0)
        return numbers

    def close(self) -> None:
        """Ends the samplers, which would poll the stopped server until pytest ends, and the server."""
        del self.graph
        gc.collect()
        self.server.stop()


@pytest.fixture(params=[0, 1])
def lag(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def run(lag: int, free_port: int, tmp_path: Path) -> Iterator[Run]:
    run = Run(config_of(lag), free_port, tmp_path)
    yield run
    run.close()


ROUNDS = FRAGMENTS // ENVIRONMENTS


def test_each_env_step_is_trained_on_in_one_iteration_unless_it_is_too_old(run: Run, lag: int) -> None:
    for iteration in range(3):
        numbers = run.collect(ROUNDS, train_step=iteration * STEPS)
        loss = run.graph.train(STEPS)
        assert np.isfinite(loss.loss)
        assert run.trained[-1] == numbers
        assert int(run.graph.train_step) == (iteration + 1) * STEPS
    assert run.graph.dropped == 0
    old = run.collect(1, train_step=2 * STEPS)
    run.collect(ROUNDS, train_step=3 * STEPS)
    run.graph.train(STEPS)
    assert (set(old) <= set(run.trained[-1])) == (lag == 1)
    assert run.graph.dropped == (0 if lag else ENVIRONMENTS)
    statistics = run.graph.take_statistics()
    assert statistics.dropped == run.graph.dropped
    assert statistics.staleness_max == (STEPS if lag else 0)


@pytest.mark.parametrize("lag", [0])
def test_a_new_generation_drops_the_sequences_of_earlier_learners(run: Run) -> None:
    """The first learner dies in the middle of an iteration; its later policies are rolled back."""
    first = run.collect(1, train_step=0)
    run.collect(ROUNDS, train_step=2 * STEPS)  # By a policy that nobody will have had.
    run.graph = run.make_training_graph()
    run.graph.begin(generation=1)
    numbers = run.collect(ROUNDS, train_step=0, generation=1)
    run.graph.train(STEPS)
    assert run.trained[-1] == numbers
    assert not set(first) & {number for batch in run.trained for number in batch}
    assert run.graph.dropped > 0


@pytest.mark.parametrize(
    ("fragments", "batch_size", "whole_sequences", "minibatch"),
    [(3, 4, False, 4), (6, 3, False, 3), (6, 3 * LENGTH, True, 3)],
    ids=["an odd number of fragments", "an odd minibatch", "an odd minibatch of complete sequences"],
)
def test_replicas_that_cannot_share_the_fragments_equally_are_refused(
    fragments: int, batch_size: int, whole_sequences: bool, minibatch: int
) -> None:
    iteration = Iteration(LENGTH * fragments, EPOCHS, 0, whole_sequences)
    with pytest.raises(ConfigurationError) as refusal:
        check_replicas(Experience(LENGTH, LENGTH, iteration=iteration), batch_size, replicas=2)
    assert refusal.value.problems == (
        f"learn.strategy: 2 replicas cannot work; allowed: a number that divides the {fragments} fragments "
        f"of an iteration and the {minibatch} examples of a minibatch",
    )


def test_a_learner_refuses_its_replicas_before_it_connects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Afterwards it would record its generation, and a corrected start would be refused."""
    config = load_config("ppo_pendulum")
    replicas = config.learn.batch_size + 1
    scope = tf.distribute.get_strategy().scope
    group = LearnerGroup(SimpleNamespace(scope=scope, num_replicas_in_sync=replicas), Stop())
    monkeypatch.setattr(learner, "join_group", lambda config, stop: group)
    monkeypatch.setattr(learner, "use_all_cores", lambda threads: None)
    stop = Stop()
    stop.request()  # So that it does not wait for a replay server.
    with pytest.raises(ConfigurationError, match=f"learn.strategy: {replicas} replicas cannot work"):
        learner.run(config, RunDirectory(tmp_path), stop, replay_address=("localhost:1",))


@pytest.mark.long
def test_one_dropped_sequence_does_not_starve_two_replicas(free_port: int, tmp_path: Path) -> None:
    """Actors collect only what an iteration takes, so that a second one for the other replica never comes."""
    done = run_script(ON_TWO_REPLICAS, str(free_port), str(tmp_path))
    assert done.stdout.splitlines()[-1:] == ["True 1"], done.stderr


@pytest.mark.long
@pytest.mark.parametrize("lstm_units", [None, 3])
def test_an_iteration_with_xla(lstm_units: int | None, free_port: int, tmp_path: Path) -> None:
    run = Run(config_of(lag=0, lstm_units=lstm_units, xla=True), free_port, tmp_path)
    numbers = run.collect(ROUNDS, train_step=0)
    assert np.isfinite(run.graph.train(STEPS).loss)
    assert run.trained[-1] == numbers
    assert int(run.graph.train_step) == STEPS
    run.close()


def test_minibatches_of_an_lstm_are_whole_sequences(
    free_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss_of = RecurrentPpoAgent._loss_of
    trained: list[np.ndarray] = []

    def remember(self, examples):
        tf.numpy_function(lambda numbers: trained.append(numbers[..., 0]), [examples.steps.observation], [])
        return loss_of(self, examples)

    monkeypatch.setattr(RecurrentPpoAgent, "_loss_of", remember)
    run = Run(config_of(lag=0, lstm_units=3), free_port, tmp_path)
    numbers = run.collect(ROUNDS, train_step=0)
    assert np.isfinite(run.graph.train(STEPS).loss)
    run.close()
    assert {batch.shape for batch in trained} == {(BATCH // LENGTH, LENGTH)}
    sequences = np.concatenate(trained)
    assert sorted(sequences.ravel()) == sorted(numbers * EPOCHS)
    assert np.all(np.diff(sequences, axis=1) == ENVIRONMENTS), "each is one environment's, in its order"
