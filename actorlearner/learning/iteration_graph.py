"""Trains on-policy agents: gathers the sequences of one iteration, and trains on them for several epochs."""

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
import tree
from tf_agents.agents.tf_agent import LossInfo

from actorlearner.agents.experience import Experience, StoredSequence
from actorlearner.agents.on_policy_agent import OnPolicyAgent
from actorlearner.config.problems import problem
from actorlearner.config.schema import LearnConfig
from actorlearner.errors import ConfigurationError
from actorlearner.learning.training_graph import TrainingGraph, shares
from actorlearner.replay.layout import ReplayLayout
from actorlearner.replay.packed import PackedLayout


def check_replicas(experience: Experience, batch_size: int, replicas: int) -> None:
    """Checks that replicas can share the sequences of an iteration and the examples of a minibatch equally.

    With `mirrored`, their number is known only when the strategy has been made. No-op without iterations.

    Raises:
      ConfigurationError: they cannot.
    """
    iteration, length = experience.iteration, experience.length
    if iteration is None:
        return
    assert length is not None
    sequences = iteration.env_steps // length
    batch = batch_size // length if iteration.whole_sequences else batch_size
    if sequences % replicas or batch % replicas:
        allowed = (
            f"a number that divides the {sequences} fragments of an iteration and the {batch} "
            "examples of a minibatch"
        )
        raise ConfigurationError([problem("learn.strategy", f"{replicas} replicas cannot work", allowed)])


class IterationGraph(TrainingGraph):
    """A TrainingGraph whose calls are whole iterations, each of `train_steps_per_call` train steps.

    It takes every sequence from replay once. Sequences that are too old, or that another learner's policy
    collected, are dropped and counted. An element of its dataset is one sequence, as a row.
    """

    def _set_up(self, layout: ReplayLayout, learn: LearnConfig) -> None:
        assert isinstance(layout, PackedLayout)
        iteration, length = layout.experience.iteration, layout.experience.length
        assert iteration is not None
        assert length is not None
        self._width = layout.format.width
        self._iteration = iteration
        self._sequences = iteration.env_steps // length
        replicas = self._strategy.num_replicas_in_sync
        per_example = length if iteration.whole_sequences else 1
        examples, batch = iteration.env_steps // per_example, learn.batch_size // per_example
        self._examples_per_replica, self._batch_per_replica = examples // replicas, batch // replicas
        self._dropped = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._generation = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.train_steps_per_call = self._steps = iteration.train_steps(learn.batch_size)

    @property
    def dropped(self) -> int:
        """Sequences dropped since this learner began.

        Their policy was too old, or another learner had published it.
        """
        return int(self._dropped)

    def begin(self, generation: int) -> None:
        """Trains only on sequences that policies of this generation collected."""
        self._generation.assign(generation)

    def _distributed(self, dataset: Callable[[], tf.data.Dataset]) -> tf.data.Dataset:
        """Returns the dataset as it is, however many replicas there are.

        With an element for each replica, an iteration could lack one sequence while two have to arrive.
        """
        return dataset()

    def _take_train_steps(self, train_steps: tf.Tensor, batches: Iterator[Any]) -> tuple[LossInfo, Any]:
        """Gathers the sequences of an iteration, and trains on them, in the graph."""
        rows = self._gather(batches)
        examples = self._strategy.run(self._prepare, args=(rows,))
        minibatches = self._examples_per_replica // self._batch_per_replica

        def train_step(count: tf.Tensor, order: tf.Tensor, sums: tf.Tensor) -> tuple[tf.Tensor, ...]:
            place = count % minibatches
            # Every epoch has an order of its own.
            order = tf.cond(tf.equal(place, 0), lambda: tf.random.shuffle(order), lambda: order)
            chosen = order[place * self._batch_per_replica : (place + 1) * self._batch_per_replica]
            step = self._run_train_step(self._train_minibatch, examples, chosen)
            losses = tf.add_n(self._strategy.experimental_local_results(step))
            # The loop starts with an empty vector: the number of losses is known only here.
            return count + 1, order, tf.cond(tf.equal(count, 0), lambda: losses, lambda: sums + losses)

        _, _, sums = tf.while_loop(
            lambda count, *_: count < self._steps,
            train_step,
            (0, tf.range(self._examples_per_replica), tf.zeros([0])),
            shape_invariants=(tf.TensorShape([]), tf.TensorShape([None]), tf.TensorShape([None])),
            parallel_iterations=1,
        )
        if self._normalizer is not None:  # Last: an iteration normalises as the policy that acted.
            self._strategy.run(self._update_normalizer, args=(rows,))
        sums.set_shape([len(tf.nest.flatten(self._loss_structure))])
        means = tf.unstack(sums / self._steps)
        return tf.nest.pack_sequence_as(self._loss_structure, means), ()

    def _gather(self, batches: Iterator[Any]) -> tf.Tensor:
        """Blocks until an iteration has all its sequences; returns their rows: uint8 [sequences, width]."""

        def take(count: tf.Tensor, rows: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
            row, _ = self._wait_for_batch(batches)
            # The next sequence overwrites an unusable one.
            return count + tf.cast(self._is_usable(row), tf.int32), rows.write(count, row[0])

        empty = tf.TensorArray(tf.uint8, self._sequences, element_shape=[self._width])
        _, rows = tf.while_loop(
            lambda count, _: count < self._sequences, take, (0, empty), parallel_iterations=1
        )
        return rows.stack()

    def _is_usable(self, row: tf.Tensor) -> tf.Tensor:
        """Returns whether to train on a sequence: its policy is recent and of this learner's generation.

        Counts an unusable sequence as dropped; records the age of a usable one.
        """
        stored: Any = self._decode(row)
        age = self.train_step - stored.policy_train_step[0]
        same = tf.equal(stored.policy_generation[0], self._generation)
        usable = same & (age >= 0) & (age <= self._iteration.max_policy_lag * self._steps)
        self._dropped.assign_add(tf.cast(~usable, tf.int64))
        self._measure_staleness(tf.where(usable, age, -1)[None])
        return usable

    def _prepare(self, rows: tf.Tensor) -> Any:
        """Returns the examples of this replica's share of the sequences."""
        agent, sequences = self._agent, self._decode(self._replica_share(rows))
        assert isinstance(agent, OnPolicyAgent)
        assert isinstance(sequences, StoredSequence)
        return tree.map_structure(tf.stop_gradient, agent.prepare(sequences))

    def _update_normalizer(self, rows: tf.Tensor) -> None:
        assert self._normalizer is not None
        self._normalizer.update(self._decode(self._replica_share(rows)).observation)

    def _replica_share(self, rows: tf.Tensor) -> tf.Tensor:
        """Returns this replica's share of the sequences."""
        replicas = tf.distribute.get_replica_context()
        share = rows[replicas.replica_id_in_sync_group :: replicas.num_replicas_in_sync]
        share.set_shape([self._sequences // replicas.num_replicas_in_sync, self._width])
        return share

    def _train_minibatch(self, examples: Any, chosen: tf.Tensor) -> tf.Tensor:
        minibatch = tree.map_structure(lambda leaf: tf.gather(leaf, chosen), examples)
        loss_info = self._agent.train(minibatch)
        self._loss_structure = tf.nest.map_structure(lambda _: None, loss_info)
        return shares(loss_info)
