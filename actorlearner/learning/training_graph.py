"""Trains an agent on batches from replay, in one TensorFlow graph under the learner's strategy.

The graph also measures how long training waits for data and how old the data is.
"""

import contextlib
import dataclasses
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from tf_agents.agents.tf_agent import LossInfo
from tf_agents.utils import common

from actorlearner.agents.experience import StoredTransition, as_transition
from actorlearner.agents.make import AgentParts
from actorlearner.config.schema import LearnConfig
from actorlearner.errors import RunError
from actorlearner.learning.group import LearnerGroup
from actorlearner.learning.priorities import importance_weights
from actorlearner.replay.layout import ReplayLayout

WriteErrors = Callable[[npt.NDArray[np.uint64], npt.NDArray[np.float32]], None]
"""Receives the Reverb keys of the sampled units, and their temporal-difference errors."""


@dataclasses.dataclass(frozen=True)
class DataStatistics:
    """Measurements since the last `take_statistics`.

    Attributes:
      wait_s: seconds in which training waited for the next batch.
      staleness_mean, staleness_max: the age of the transitions trained on: train steps between the policy
        that acted and the train step that used them. Random actions are left out, as are policies of train
        steps that were rolled back and not reached again; None if nothing else is left.
      dropped: sequences dropped since the learner began, see IterationGraph; None in a plain TrainingGraph.
    """

    wait_s: float
    staleness_mean: float | None
    staleness_max: int | None
    dropped: int | None = None


class TrainingGraph:
    """Takes train steps. A train step decodes its batch on each replica and calls the agent's `train`.

    Attributes:
      train_step: the agent's.
      failed: whether a call of `train` has failed.
    """

    train_steps_per_call: int | None = None
    """The train steps that each call must take; None: any number."""

    def __init__(
        self,
        parts: AgentParts,
        dataset: Callable[[], tf.data.Dataset],
        layout: ReplayLayout,
        learn: LearnConfig,
        *,
        group: LearnerGroup,
        writer: tf.summary.SummaryWriter,
        write_priorities: Sequence[WriteErrors] = (),
    ) -> None:
        """Traces the training graph, which takes seconds; takes no train step.

        Args:
          parts: the agent and its train step, made under the group's strategy.
          dataset: makes a dataset whose elements are (batch of one replica, packed.SampleInfo or ()).
          layout: the layout of replay, which decodes the batches.
          learn: the learner's part of the configuration.
          group: this learner's strategy, and its collectives with other learners.
          writer: receives the agent's TensorBoard summaries; the caller flushes it.
          write_priorities: each receives the keys and the errors of the units of each call, if they are drawn
            by priority.
        """
        self.train_step = parts.train_step
        self._agent = parts.agent
        self._normalizer = parts.normalizer
        self._decode = layout.decode
        self._group = group
        self._strategy = group.strategy
        self._writer = writer
        self._summary_interval = learn.summary_interval
        self._priorities = layout.experience.priorities
        self._write_priorities = write_priorities
        self._xla = learn.xla
        self._set_up(layout, learn)
        self._in_call = False
        self.failed = False
        # Made outside of the strategy's scope, because no replica uses them.
        self._waiting_since = tf.Variable(0.0, dtype=tf.float64, trainable=False)  # Unix time; 0: no wait.
        self._wait_s = tf.Variable(0.0, dtype=tf.float64, trainable=False)
        self._staleness_sum = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._staleness_max = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._staleness_count = tf.Variable(0, dtype=tf.int64, trainable=False)
        with self._training_context():
            self._batches: Iterator[Any] = iter(self._distributed(dataset))
            # Without autograph: converting all called code would take longer than tracing it.
            self._train_steps = tf.function(self._take_train_steps, autograph=False)
            self._train_steps.get_concrete_function(tf.constant(1), self._batches)

    @property
    def dropped(self) -> int | None:
        """Sequences dropped since this learner began; None if it never drops any."""
        return None

    def begin(self, generation: int) -> None:
        """Sets the generation of the policies that this learner publishes; used only on-policy."""

    @property
    def waiting_for_data(self) -> bool:
        """True while training waits for its next batch, or another learner waits for one.

        Safe to read from another thread.
        """
        return bool(self._waiting_since.numpy() > 0.0)

    @property
    def in_train_step(self) -> bool:
        """True while variables may change; while training waits for data, they are consistent.

        Safe to read from another thread. Stays True once a train step has failed.
        """
        return self._in_call and not self.waiting_for_data

    def train(self, train_steps: int) -> LossInfo:
        """Takes train steps in one call of the graph. Blocks until they have their batches.

        Returns:
          The losses of the last train step, each a scalar: its mean over the global batch. From an
          IterationGraph, the means over all train steps of the call.

        Raises:
          RunError: training has diverged: some variables may be NaN.
          tf.errors.OpError: the graph failed, for example because another learner of the group was lost.
        """
        self._in_call = True
        begin = int(self.train_step.numpy())
        try:
            with self._training_context():
                losses, keys_and_errors = self._train_steps(tf.constant(train_steps), self._batches)
            if not math.isfinite(mean := float(np.mean(losses.loss))):
                raise _diverged(begin, str(mean))
        except Exception as error:
            self.failed = True
            if re.search("Tensor had (NaN|Inf|-Inf)", str(error)):  # From tf.debugging.check_numerics.
                raise _diverged(begin, "not finite") from error
            raise
        for write in self._write_priorities:
            keys, errors = keys_and_errors
            write(keys.numpy().ravel(), errors.numpy().ravel())
        self._in_call = False
        return losses

    def take_statistics(self) -> DataStatistics:
        """Returns the measurements since the last call, and resets them.

        They include a wait that lasts: a stop may have abandoned the thread that trains.
        """
        count = int(self._staleness_count)
        waiting_since = float(self._waiting_since)
        statistics = DataStatistics(
            wait_s=float(self._wait_s) + (time.time() - waiting_since if waiting_since else 0.0),
            staleness_mean=int(self._staleness_sum) / count if count else None,
            staleness_max=int(self._staleness_max) if count else None,
            dropped=self.dropped,
        )
        self._wait_s.assign(0.0)
        for counter in (self._staleness_sum, self._staleness_max, self._staleness_count):
            counter.assign(0)
        return statistics

    def _set_up(self, layout: ReplayLayout, learn: LearnConfig) -> None:
        """Makes what a subclass needs before the graph is traced."""

    def _distributed(self, dataset: Callable[[], tf.data.Dataset]) -> Any:
        """Returns the dataset whose elements have one element of `dataset` for each replica."""
        return self._strategy.distribute_datasets_from_function(lambda _: dataset())

    @contextlib.contextmanager
    def _training_context(self) -> Iterator[None]:
        def summary_due() -> tf.Tensor:
            return tf.equal(self.train_step % self._summary_interval, 0)

        with (
            self._writer.as_default(),
            tf.summary.record_if(summary_due),
            common.soft_device_placement(),
            self._strategy.scope(),
        ):
            yield

    def _take_train_steps(self, train_steps: tf.Tensor, batches: Iterator[Any]) -> tuple[LossInfo, Any]:
        """Takes train steps, in the graph; returns losses, and the keys and errors of the sampled units.

        A tf.while_loop needs the structure of its variables in advance, but only tracing a train step shows
        the structure of the losses. So the loop carries the losses as a vector.
        """

        def train_step(count: tf.Tensor, _: tf.Tensor, arrays: Any) -> tuple[tf.Tensor, tf.Tensor, Any]:
            losses, keys_and_errors = self._take_train_step(batches)
            pairs = zip(arrays, keys_and_errors, strict=True)
            return count + 1, losses, tuple(array.write(count, part) for array, part in pairs)

        # Keys, and errors. Empty without priorities.
        dtypes = (tf.uint64, tf.float32) if self._priorities else ()
        empty = tuple(tf.TensorArray(dtype, train_steps) for dtype in dtypes)
        shapes = (tf.TensorShape(None),) * len(empty)
        _, losses, arrays = tf.while_loop(
            lambda count, *_: count < train_steps,
            train_step,
            (tf.zeros_like(train_steps), tf.zeros([0]), empty),
            shape_invariants=(tf.TensorShape([]), tf.TensorShape([None]), shapes),
            parallel_iterations=1,
        )
        losses = self._group.sum(losses)
        losses.set_shape([len(tf.nest.flatten(self._loss_structure))])
        info = tf.nest.pack_sequence_as(self._loss_structure, tf.unstack(losses))
        return info, tuple(array.stack() for array in arrays)

    def _take_train_step(self, batches: Iterator[Any]) -> tuple[tf.Tensor, Any]:
        """Takes one train step; returns the losses as a vector, and the keys and errors of its units."""
        batch, sample_info = self._wait_for_batch(batches)
        losses, ages, errors = self._run_train_step(self._train_replica, batch, sample_info)
        local = self._strategy.experimental_local_results
        for replica_ages in local(ages):
            self._measure_staleness(replica_ages)
        parts = (sample_info.key, errors) if self._priorities else ()
        # Sums over this process's replicas only; the sum over a group's learners is taken once per call.
        return tf.add_n(local(losses)), tuple(tf.concat(local(part), axis=0) for part in parts)

    def _wait_for_batch(self, batches: Iterator[Any]) -> Any:
        """Returns the next batch; measures how long it took, and waits until all learners have theirs."""
        started = tf.timestamp()
        with tf.control_dependencies([self._waiting_since.assign(started)]):
            sample = next(batches)
        with tf.control_dependencies(tf.nest.flatten(sample, expand_composites=True)):
            ended = tf.timestamp()
        with tf.control_dependencies([ended]):
            waited = [self._wait_s.assign_add(ended - started)]
        with tf.control_dependencies(waited):
            all_have_data = self._group.all_have_data()
        with tf.control_dependencies([*waited, *all_have_data]):
            measured = [*waited, self._waiting_since.assign(0.0)]
        # Training depends on the measurement: otherwise the clock might be read after the train step.
        with tf.control_dependencies(measured):
            return tf.nest.map_structure(_copy_in_place, sample, expand_composites=True)

    def _train_replica(self, batch: Any, sample_info: Any) -> tuple[tf.Tensor, tf.Tensor, Any]:
        """Trains on one replica's batch; returns its share of each loss, and the units' ages and errors.

        The age in train steps is -1 for random actions and for policies of train steps that were rolled back.
        """
        stored = self._decode(batch)
        ages = self.train_step - stored.policy_train_step
        ages = tf.where((stored.policy_train_step >= 0) & (ages >= 0), ages, -tf.ones_like(ages))
        if self._normalizer is not None:
            self._normalizer.update(stored.observation)
        weights = importance_weights(sample_info, self._priorities) if self._priorities else None
        experience: Any = as_transition(stored) if isinstance(stored, StoredTransition) else stored
        loss_info = self._agent.train(experience, weights)
        self._loss_structure = tf.nest.map_structure(lambda _: None, loss_info)
        return shares(loss_info), ages, loss_info.extra.td_error if self._priorities else ()

    def _run_train_step(self, train: Callable[..., Any], *arguments: Any) -> Any:
        """Runs one train step on all replicas, in the graph; with `learn.xla`, compiled without summaries."""

        def without_summaries(*arguments: Any) -> Any:
            with tf.summary.record_if(False):
                return train(*arguments)

        if self._xla:
            step = tf.function(without_summaries, autograph=False, jit_compile=True)
        else:
            step = tf.autograph.experimental.do_not_convert(train)
        return self._strategy.run(step, args=arguments)

    def _measure_staleness(self, ages: tf.Tensor) -> None:
        known = ages >= 0
        self._staleness_sum.assign_add(tf.reduce_sum(tf.where(known, ages, tf.zeros_like(ages))))
        self._staleness_count.assign_add(tf.math.count_nonzero(known))
        self._staleness_max.assign(tf.maximum(self._staleness_max, tf.reduce_max(ages)))


def shares(loss_info: LossInfo) -> tf.Tensor:
    """Returns one replica's share of each loss of the global batch: float32, one element per loss.

    Agents divide a scalar loss by the global batch size already. A loss with one element per transition, such
    as a temporal-difference loss, is averaged here.
    """
    replicas = tf.distribute.get_replica_context().num_replicas_in_sync

    def share(loss: tf.Tensor) -> tf.Tensor:
        loss = tf.cast(loss, tf.float32)
        return loss if loss.shape.rank == 0 else tf.reduce_mean(loss) / replicas

    return tf.stack([share(loss) for loss in tf.nest.flatten(loss_info)])


def _diverged(train_step: int, loss: str) -> RunError:
    return RunError(
        f"training has diverged: after train step {train_step} the loss was {loss}; the last checkpoint and "
        "the policies published before are kept"
    )


def _copy_in_place(tensor: tf.Tensor) -> tf.Tensor:
    """Returns the same tensor on the same device, as a new operation in the graph."""
    with tf.device(tensor.device):
        return tf.identity(tensor)
