"""The training graph trains as TF-Agents does, and measures waiting and staleness."""

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.agents.tf_agent import LossInfo
from tf_agents.train import learner as stock_learner

from actorlearner.agents.experience import as_transition
from actorlearner.errors import RunError
from actorlearner.learning import training_loop
from actorlearner.learning.checkpoint import LearnerCheckpoint
from actorlearner.learning.group import LearnerGroup
from actorlearner.learning.training_graph import DataStatistics, TrainingGraph
from actorlearner.process.stop import Stop
from tests.support.training import (
    LAYOUT,
    fixed_dataset,
    fixed_rows,
    layout_with,
    make_parts,
    make_training_graph,
    values_of,
    with_info,
)

BATCH = 6


def graph_of(directory: Path, policy_train_steps: list[list[int]]) -> TrainingGraph:
    """A training graph whose n-th batch was collected by the policies of these train steps."""
    rows = fixed_rows(sum(len(batch) for batch in policy_train_steps))
    rows[:, -8:] = np.concatenate(policy_train_steps).astype(np.int64)[:, None].view(np.uint8)
    dataset = tf.data.Dataset.from_tensor_slices(rows).batch(len(policy_train_steps[0]))
    return make_training_graph(directory, make_parts(), lambda: with_info(dataset))


def staleness(statistics: DataStatistics) -> tuple[float | None, int | None]:
    return statistics.staleness_mean, statistics.staleness_max


def test_staleness_is_the_policy_age_in_train_steps_without_random_actions(tmp_path: Path) -> None:
    graph = graph_of(
        tmp_path,
        [
            [0, 0, -1],  # Train step 0: ages 0, 0.
            [1, 0, -1],  # Train step 1: ages 0, 1.
            [-1, -1, -1],
            [3, 2, 0],  # Train step 3: ages 0, 1, 3.
            [-1, -1, -1],
            [-1, -1, 1],  # Train step 5: age 4.
        ],
    )
    graph.train(4)
    assert staleness(graph.take_statistics()) == (pytest.approx(5 / 7), 3)
    graph.train(1)
    assert staleness(graph.take_statistics()) == (None, None)
    graph.train(1)
    assert staleness(graph.take_statistics()) == (4.0, 4)


def test_random_actions_do_not_raise_staleness(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, [[-1] * 4] * 9 + [[-1, -1, -1, 9]])
    graph.train(10)
    assert staleness(graph.take_statistics()) == (0.0, 0)


def test_staleness_leaves_out_policies_of_rolled_back_train_steps(tmp_path: Path) -> None:
    """Transitions that a lost learner's policy collected stay in replay."""
    graph = graph_of(tmp_path, [[900, 900, 0], [1, 900, -1], [900, 900, 900], [4, 3, 0]])
    graph.train(2)  # Train step 0: age 0. Train step 1: age 0.
    assert staleness(graph.take_statistics()) == (0.0, 0)
    graph.train(1)
    assert staleness(graph.take_statistics()) == (None, None)
    graph.train(1)  # Train step 3: ages 0 and 3.
    assert staleness(graph.take_statistics()) == (1.5, 3)


def test_losses_are_means_over_the_batch(tmp_path: Path) -> None:
    """DQN gives one `td_loss` and one `td_error` for each transition, and their mean loss."""
    means = []
    for repeats in (1, 4):
        rows = tf.data.Dataset.from_tensors(np.tile(fixed_rows(BATCH), (repeats, 1)))
        graph = make_training_graph(tmp_path, make_parts(), lambda rows=rows: with_info(rows))
        loss = graph.train(1)
        np.testing.assert_allclose(loss.extra.td_loss, loss.loss, rtol=1e-6)
        means.append([float(value) for value in (loss.loss, *loss.extra)])
    np.testing.assert_allclose(*means, rtol=1e-5)  # The same transitions, four times as many.


def test_xla_takes_the_same_train_steps(tmp_path: Path) -> None:
    trained, statistics, compiled = [], [], []
    for xla in (False, True):
        parts = make_parts()
        graph = make_training_graph(tmp_path / str(xla), parts, lambda: fixed_dataset(BATCH, 7), xla=xla)
        losses = graph.train(7)
        trained.append(values_of(parts) | {"loss": losses.loss, "td_error": losses.extra.td_error})
        statistics.append(staleness(graph.take_statistics()))
        compiled.append(_compiled_functions(graph))
    assert compiled == [0, 1]
    assert statistics[0] == statistics[1]
    for name, value in trained[0].items():
        np.testing.assert_allclose(trained[1][name], value, rtol=1e-4, atol=1e-6, err_msg=name)


def _compiled_functions(graph: TrainingGraph) -> int:
    """How many functions the training graph has XLA compile."""
    traced = graph._train_steps.get_concrete_function(tf.constant(1), graph._batches).graph
    return sum(function.attr["_XlaMustCompile"].b for function in traced.as_graph_def().library.function)


def test_nothing_is_measured_before_training(tmp_path: Path) -> None:
    assert graph_of(tmp_path, [[0]]).take_statistics() == DataStatistics(0.0, None, None)


def test_taking_the_statistics_resets_them(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, [[0, 0]] * 6)
    graph.train(3)
    assert graph.take_statistics().wait_s > 0
    assert graph.take_statistics() == DataStatistics(0.0, None, None)
    graph.train(1)
    assert staleness(graph.take_statistics()) == (3.0, 3)


class _Clock:
    """A clock in the place of TensorFlow's.

    It goes on by `fetch_s` while a batch is waited for, and by a second each time that one is decoded.
    """

    def __init__(self, fetch_s: float) -> None:
        self._fetch_s = fetch_s
        self._now = 0.0
        self._waits = threading.Semaphore(0)
        self._read = 0
        self.ended = False

    def timestamp(self) -> tf.Tensor:
        return tf.ensure_shape(tf.numpy_function(self._look, [], tf.float64), [])

    def _look(self) -> np.float64:
        now = np.float64(self._now)
        if self._read % 2 == 0:  # The first look of each train step: from now on it waits.
            self._waits.release()
        self._read += 1
        return now

    def rows(self) -> Iterator[np.ndarray]:
        """The same batch for ever, each once a train step waits for it."""
        rows = fixed_rows(BATCH)
        while True:
            # Never blocks for good: destroying the dataset's iterator waits for this generator.
            while not self._waits.acquire(timeout=0.05):
                if self.ended:
                    return
            self._now += self._fetch_s
            yield rows

    def decode(self, batch: tf.Tensor) -> Any:
        return LAYOUT.decode(
            tf.ensure_shape(tf.numpy_function(self._work, [batch], batch.dtype), batch.shape)
        )

    def _work(self, rows: np.ndarray) -> np.ndarray:
        self._now += 1.0
        return rows


@pytest.mark.parametrize("fetch_s", [0.0, 7.0])
def test_wait_time_is_the_wait_for_batches_without_the_train_steps(
    fetch_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = _Clock(fetch_s)
    monkeypatch.setattr(tf, "timestamp", clock.timestamp)
    rows = fixed_rows(BATCH)
    dataset = tf.data.Dataset.from_generator(
        clock.rows, output_signature=tf.TensorSpec(rows.shape, rows.dtype)
    )
    layout = layout_with(clock.decode)
    graph = make_training_graph(tmp_path, make_parts(), lambda: with_info(dataset), layout)
    try:
        graph.train(1)
        assert graph.take_statistics().wait_s == fetch_s
        graph.train(6)
        assert graph.take_statistics().wait_s == 6 * fetch_s
    finally:
        clock.ended = True


def test_waiting_for_data_is_true_while_a_train_step_waits_for_its_batch(
    tmp_path: Path, eventually: Callable[..., None]
) -> None:
    rows = fixed_rows(BATCH)
    batches: queue.Queue[dict[str, Any]] = queue.Queue()
    ended = threading.Event()

    def rows_when_put() -> Iterator[np.ndarray]:
        # Never blocks for good: destroying the dataset's iterator waits for this generator.
        while not (ended.is_set() and batches.empty()):
            with contextlib.suppress(queue.Empty):
                yield batches.get(timeout=0.05)

    signature = tf.TensorSpec(rows.shape, rows.dtype)
    dataset = tf.data.Dataset.from_generator(rows_when_put, output_signature=signature)
    graph = make_training_graph(tmp_path, make_parts(), lambda: with_info(dataset))
    assert not graph.waiting_for_data
    training = threading.Thread(target=lambda: graph.train(3))
    training.start()
    try:
        for done in range(3):
            eventually(lambda done=done: graph.waiting_for_data and graph.train_step.numpy() == done)
            assert done or graph.take_statistics().wait_s > 0  # A stop reads the wait that lasts.
            batches.put(rows)
    finally:
        ended.set()
        training.join()
    assert not graph.waiting_for_data
    assert graph.train_step.numpy() == 3


@pytest.mark.parametrize("checked_in_the_graph", [True, False])
def test_after_a_divergence_the_variables_stay_unsafe_to_save(
    checked_in_the_graph: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop may have abandoned the thread that trains."""

    def diverge(experience: object, weights: object) -> LossInfo:
        loss = tf.constant(np.nan)
        return LossInfo(tf.debugging.check_numerics(loss, "") if checked_in_the_graph else loss, ())

    parts = make_parts()
    monkeypatch.setattr(parts.agent, "train", diverge)
    graph = make_training_graph(tmp_path, parts, lambda: fixed_dataset(BATCH, 2))
    assert not graph.in_train_step
    assert not graph.failed
    with pytest.raises(RunError, match="training has diverged: after train step 0 the loss was n"):
        graph.train(1)
    assert graph.in_train_step
    assert graph.failed


def test_a_checkpoint_never_mixes_two_train_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data comes while a stop's checkpoint is written, and the train step outlasts the write."""
    monkeypatch.setattr(training_loop, "_STARVED_AFTER_S", 0.0)
    rows = fixed_rows(BATCH)
    batches: queue.Queue[np.ndarray] = queue.Queue()
    begun, go_on = threading.Event(), threading.Event()

    def block(rows: np.ndarray) -> np.ndarray:
        begun.set()
        assert go_on.wait(60)
        return rows

    def decode(batch: tf.Tensor) -> Any:
        return LAYOUT.decode(tf.ensure_shape(tf.numpy_function(block, [batch], batch.dtype), batch.shape))

    def one_batch() -> Iterator[np.ndarray]:
        yield batches.get(timeout=60)

    dataset = tf.data.Dataset.from_generator(
        one_batch, output_signature=tf.TensorSpec(rows.shape, rows.dtype)
    )
    parts = make_parts()
    graph = make_training_graph(tmp_path, parts, lambda: with_info(dataset), layout_with(decode))
    stop = Stop()
    stop.request()
    group = LearnerGroup(tf.distribute.get_strategy(), stop)
    training_loop.train_on_thread(lambda: graph.train(1), graph, stop, group, lambda: None)
    checkpoint = LearnerCheckpoint(tmp_path / "checkpoints", parts)
    write, remove = checkpoint._checkpoint.write, checkpoint._remove

    def train_meanwhile(path: str) -> Any:
        if path.endswith("-0"):
            batches.put(rows)
            assert begun.wait(60)
        return write(path)

    def end_the_train_step(name: str) -> None:
        remove(name)
        go_on.set()

    monkeypatch.setattr(checkpoint._checkpoint, "write", train_meanwhile)
    monkeypatch.setattr(checkpoint, "_remove", end_the_train_step)
    assert checkpoint.save(graph=graph)
    assert [path.name for path in (tmp_path / "checkpoints").glob("*.seal.json")] == ["ckpt-1.seal.json"]


def test_training_equals_tf_agents_stock_learner(tmp_path: Path) -> None:
    ours = make_parts()
    make_training_graph(tmp_path, ours, lambda: fixed_dataset(BATCH, 4)).train(4)
    stock = make_parts()
    decoded = fixed_dataset(BATCH, 4).map(lambda rows, info: (as_transition(LAYOUT.decode(rows)), info))
    tf.config.run_functions_eagerly(True)  # Its graph takes long to trace, and its train steps are few.
    try:
        stock_learner.Learner(
            str(tmp_path), stock.train_step, stock.agent, lambda: decoded, checkpoint_interval=-1
        ).run(iterations=4)
    finally:
        tf.config.run_functions_eagerly(False)
    expected = values_of(stock)
    for name, value in values_of(ours).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-5, atol=1e-7, err_msg=name)
