"""TF-Agents' Learner, which also measures in its graph how long it waits for data and how old the data is."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tf_agents.agents import tf_agent
from tf_agents.train import learner
from tf_agents.utils import common

from actorlearner.agents.make import AgentParts
from actorlearner.environments.environment import Nest
from actorlearner.replay.training_data import as_transition
from actorlearner.replay.transition import StoredTransition

Decode = Callable[[Any], StoredTransition]


class Together:
    """Collectives of a group inside the training graph; no-ops for a learner that trains by itself."""

    def all_have_data(self) -> list[tf.Operation]:
        """Returns operations that end when every learner has the batch of its train step."""
        return []

    def sum(self, value: tf.Tensor) -> tf.Tensor:
        """Returns the sum of a float32 tensor over all learners, with the same shape."""
        return value


_ALONE = Together()


@dataclasses.dataclass(frozen=True)
class DataStatistics:
    """Measurements since the last `take_statistics`.

    Attributes:
      wait_s: seconds in which training waited for the next batch.
      staleness_mean, staleness_max: the age of the transitions trained on: train steps between the policy
        that acted and the train step that used them. Random actions are left out, as are policies of train
        steps that were rolled back and not reached again; None if nothing else is left.
    """

    wait_s: float
    staleness_mean: float | None
    staleness_max: int | None


class _DecodingAgent(tf.Module):
    """An agent that trains on encoded batches from replay."""

    def __init__(self, agent: tf_agent.TFAgent, decode: Decode) -> None:
        super().__init__()
        self._agent = agent
        self._decode = decode

    def initialize(self) -> Any:
        return self._agent.initialize()

    def train(self, experience: Nest) -> tf_agent.LossInfo:
        return self._agent.train(as_transition(self._decode(experience)))


class MeasuredLearner(learner.Learner):
    """Trains on encoded batches from replay and decodes them inside the train step.

    Everything else is TF-Agents' `Learner`: `strategy.run` for each train step, several train steps in one
    graph call, summaries. But its graph is traced only once, and before there is data: tracing takes seconds,
    in which replay can fill.
    """

    def __init__(
        self,
        writer: tf.summary.SummaryWriter,
        parts: AgentParts,
        dataset: Callable[[], tf.data.Dataset],
        decode: Decode,
        *,
        summary_interval: int,
        strategy: tf.distribute.Strategy,
        together: Together = _ALONE,
    ) -> None:
        """Traces the training graph, without taking a train step.

        The base class initialises the agent: restore a checkpoint after this.

        Args:
          writer: receives TensorBoard summaries; the caller flushes it.
          parts: the agent and its train step.
          dataset: makes the dataset of (batch, ()).
          decode: decodes a batch into transitions, in the graph.
          summary_interval: train steps between two summaries.
          strategy: the strategy under which the agent was made.
          together: the collectives of this learner's group.
        """
        # Outside of the strategy's scope: no replica uses them.
        self._waiting = tf.Variable(False, trainable=False)
        self._wait_s = tf.Variable(0.0, dtype=tf.float64, trainable=False)
        self._staleness_sum = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._staleness_max = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._staleness_count = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._decode = decode
        self._together = together
        super().__init__(
            "ram://learner",  # Where its checkpoints would go.
            parts.train_step,
            _DecodingAgent(parts.agent, decode),
            dataset,
            checkpoint_interval=-1,  # Ours go to the run directory's own place and are written at a stop.
            summary_interval=0,  # No writer of its own: see Summaries.
            strategy=strategy,
            # It would trace a train step only to make the optimisers' variables; our single trace makes them.
            run_optimizer_variable_init=False,
        )
        self.train_summary_writer = writer
        self.summary_interval = tf.constant(summary_interval, dtype=tf.int64)
        self._traced = False
        self.run()

    @property
    def waiting_for_data(self) -> bool:
        """Whether a train step waits for its batch now, or for the batch of another learner.

        Safe to read from another thread. While it is True, no variable is in the middle of a train step.
        """
        return bool(self._waiting.numpy())

    def _train(self, iterations: tf.Tensor, iterator: Iterator[Any], parallel_iterations: int) -> Any:
        """Called by the base class's `run`, within its writer and strategy; the first call only traces."""
        if self._traced:
            return self._train_steps(iterations, iterator)
        self._train_steps.get_concrete_function(iterations, iterator)
        self._traced = True
        return None

    @common.function(autograph=False)  # Converting all called code would take longer than tracing it.
    def _train_steps(self, iterations: tf.Tensor, iterator: Iterator[Any]) -> tf_agent.LossInfo:
        """Takes train steps; returns the losses of the last one, each a mean over the whole batch.

        A tf.while_loop needs the structure of its variables in advance, but the structure of the losses is
        only known from a train step. So the loop carries them as a vector.
        """

        def train_step(count: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return count + 1, self._as_vector(self.single_train_step(iterator))

        _, losses = tf.while_loop(
            lambda count, _: count < iterations,
            train_step,
            (tf.zeros_like(iterations), tf.zeros([0])),
            shape_invariants=(tf.TensorShape([]), tf.TensorShape([None])),
            parallel_iterations=1,
        )
        return self._as_loss_info(self._together.sum(losses))

    def _as_vector(self, loss_info: tf_agent.LossInfo) -> tf.Tensor:
        self._loss_structure = tf.nest.map_structure(lambda _: None, loss_info)
        shares = self.strategy.run(_shares, args=(loss_info,))
        # The replicas of this process; a group adds up its learners once in a call.
        return tf.add_n(self.strategy.experimental_local_results(shares))

    def _as_loss_info(self, losses: tf.Tensor) -> tf_agent.LossInfo:
        losses.set_shape([len(tf.nest.flatten(self._loss_structure))])
        return tf.nest.pack_sequence_as(self._loss_structure, tf.unstack(losses))

    def single_train_step(self, iterator: Iterator[Any]) -> Any:
        """Takes one train step; called by the base class inside its graph."""
        with tf.control_dependencies([self._waiting.assign(True)]):
            started = tf.timestamp()
        with tf.control_dependencies([started]):
            sample = next(iterator)
        with tf.control_dependencies(tf.nest.flatten(sample, expand_composites=True)):
            ended = tf.timestamp()
        with tf.control_dependencies([ended]):
            waited = [self._wait_s.assign_add(ended - started)]
        with tf.control_dependencies(waited):
            everybodys = self._together.all_have_data()
        with tf.control_dependencies([*waited, *everybodys]):
            measured = [*waited, self._waiting.assign(False)]
        # Training depends on the measurement; otherwise the clock might be read only after the train step has
        # freed a thread.
        with tf.control_dependencies(measured):
            sample = tf.nest.map_structure(_copy_in_place, sample, expand_composites=True)
        for batch in self.strategy.experimental_local_results(sample[0]):
            self._measure_staleness(self._decode(batch).policy_train_step)
        return super().single_train_step(iter([sample]))

    def _measure_staleness(self, policy_train_step: tf.Tensor) -> None:
        ages = self.train_step - policy_train_step
        # Random actions have no age, nor have policies of train steps that were rolled back.
        known = (policy_train_step >= 0) & (ages >= 0)
        ages = tf.where(known, ages, tf.zeros_like(ages))
        self._staleness_sum.assign_add(tf.reduce_sum(ages))
        self._staleness_count.assign_add(tf.math.count_nonzero(known))
        self._staleness_max.assign(tf.maximum(self._staleness_max, tf.reduce_max(ages)))

    def take_statistics(self) -> DataStatistics:
        """Returns the measurements since the last call, and resets them."""
        count = int(self._staleness_count)
        statistics = DataStatistics(
            wait_s=float(self._wait_s),
            staleness_mean=int(self._staleness_sum) / count if count else None,
            staleness_max=int(self._staleness_max) if count else None,
        )
        self._wait_s.assign(0.0)
        for counter in (self._staleness_sum, self._staleness_max, self._staleness_count):
            counter.assign(0)
        return statistics


def _shares(loss_info: tf_agent.LossInfo) -> tf.Tensor:
    """Returns one replica's share of each loss of the whole batch: float32, one element per loss.

    Agents divide a scalar loss by the size of the whole batch. A loss with one element per transition, such
    as DQN's `td_loss`, is not divided yet.
    """
    replicas = tf.distribute.get_replica_context().num_replicas_in_sync

    def share(loss: tf.Tensor) -> tf.Tensor:
        loss = tf.cast(loss, tf.float32)
        return loss if loss.shape.rank == 0 else tf.reduce_mean(loss) / replicas

    return tf.stack([share(loss) for loss in tf.nest.flatten(loss_info)])


def _copy_in_place(tensor: tf.Tensor) -> tf.Tensor:
    """Returns the same tensor on the same device, as a new operation in the graph."""
    with tf.device(tensor.device):
        return tf.identity(tensor)
