"""The interface of on-policy agents, and generalised advantage estimation."""

import abc
from typing import Any

import tensorflow as tf
import tree
from tf_agents.agents import tf_agent

from actorlearner.agents.experience import StoredSequence
from actorlearner.environments.environment import Nest


class OnPolicyAgent(tf_agent.TFAgent, abc.ABC):
    """An agent that learns in iterations, see `experience.Iteration`.

    The learner calls `prepare` once in an iteration, and then `train` with each minibatch. All calls are made
    in the graph, on each replica with its own part of the data.
    """

    @abc.abstractmethod
    def prepare(self, sequences: StoredSequence) -> Nest:
        """Returns the examples of an iteration.

        Args:
          sequences: the replica's sequences, [F, T, ...].

        Returns:
          A nest of tensors [F * T, ...], one example for each env step; or [F, ...], one for each sequence,
          if the iteration has `whole_sequences`. `train` takes any subset of the examples. The weight
          is 0 for env steps that must not be learned from.
        """


def flatten_time(nest: Nest) -> Nest:
    """Merges the first two dimensions of all tensors: [F, T, ...] becomes [F * T, ...]."""
    return tree.map_structure(lambda leaf: tf.reshape(leaf, [-1, *leaf.shape[2:]]), nest)


def discounted_sums(sequences: StoredSequence, gamma: float) -> tf.Tensor:
    """Returns the discounted sums of the rewards since an episode or a sequence began, float32 [F, T].

    Reward normalisation divides by their deviation. The deviation of single rewards would not do: it is 0 if
    all rewards are equal.
    """
    goes_on = sequences.discount * tf.cast(~sequences.last, tf.float32)
    by_time = (tf.transpose(sequences.reward), tf.transpose(goes_on))

    def forwards(before: tuple[tf.Tensor, tf.Tensor], step: Any) -> tuple[tf.Tensor, tf.Tensor]:
        (carried, _), (reward, more) = before, step
        total = carried + reward
        return gamma * total * more, total

    zeros = tf.zeros_like(sequences.reward[:, 0])
    _, sums = tf.scan(forwards, by_time, (zeros, zeros))
    return tf.transpose(sums)


def generalized_advantages(
    sequences: StoredSequence,
    rewards: tf.Tensor,
    values: tf.Tensor,
    next_values: tf.Tensor,
    gamma: float,
    trace_decay: float,
) -> tf.Tensor:
    """Returns the advantages of the actions, float32 [F, T].

    With the discounts d, delta_t = r_t + gamma d_t V(s'_t) - V(s_t), and within an episode

        A_t = delta_t + gamma d_t trace_decay A_(t+1)

    where s'_t is the next observation before any reset. Truncated episodes and the ends of sequences are
    bootstrapped from it; terminations (d = 0) are not. An invalid env step gets the advantage of the next
    env step; 0 if it ends its episode or sequence. ("High-Dimensional Continuous Control Using Generalized
    Advantage Estimation", Schulman et al. 2015, https://arxiv.org/abs/1506.02438, equation 16.)

    Args:
      sequences: [F, T, ...].
      rewards: float32 [F, T].
      values: V(observation), float32 [F, T].
      next_values: V(next_observation), float32 [F, T].
      gamma: discount of one env step.
      trace_decay: lambda.
    """
    deltas = rewards + gamma * sequences.discount * next_values - values
    goes_on = tf.cast(~sequences.last, tf.float32)
    deltas = tf.where(sequences.valid, deltas, tf.zeros_like(deltas))
    decays = tf.where(sequences.valid, gamma * sequences.discount * trace_decay * goes_on, goes_on)

    def backwards(following: tf.Tensor, step: Any) -> tf.Tensor:
        delta, decay = step
        return delta + decay * following

    by_time = (tf.transpose(deltas), tf.transpose(decays))
    return tf.transpose(tf.scan(backwards, by_time, tf.zeros_like(deltas[:, 0]), reverse=True))
