"""The agent and the collect policy of PPO."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf
from tf_agents.agents.ppo import ppo_clip_agent, ppo_policy
from tf_agents.agents.tf_agent import LossInfo
from tf_agents.policies import tf_policy
from tf_agents.trajectories import policy_step
from tf_agents.trajectories import time_step as ts

from actorlearner.agents.experience import StoredSequence
from actorlearner.agents.normalizer import RunningMoments, summed_over_replicas
from actorlearner.agents.on_policy_agent import (
    OnPolicyAgent,
    discounted_sums,
    flatten_time,
    generalized_advantages,
)
from actorlearner.agents.optimizer import create_moments
from actorlearner.environments.environment import Nest

_MAX_REWARD = 10.0
"""Limit of normalised rewards, as in TF-Agents' PPO."""


class PolicyInfo(NamedTuple):
    """The info that the collect policy returns with each action.

    Attributes:
      action: the drawn action, before it was clipped to its bounds.
      log_probability: float32, the logarithm of the drawn action's probability (density).
    """

    action: Any
    log_probability: Any


class Examples(NamedTuple):
    """Env steps to train on, [B, ...]; `weight` is 0 for an env step that must not be learned from."""

    observation: Nest
    info: PolicyInfo
    advantage: tf.Tensor
    returns: tf.Tensor
    weight: tf.Tensor


class PpoAgent(ppo_clip_agent.PPOClipAgent, OnPolicyAgent):
    """TF-Agents' PPO agent that computes advantages once in an iteration and trains on minibatches."""

    def __init__(
        self,
        *arguments: Any,
        make_collect_policy: Callable[[ppo_policy.PPOPolicy], "CollectPolicy"],
        reward_normalizer: bool,
        **keywords: Any,
    ) -> None:
        """Makes a PPOClipAgent.

        Args:
          arguments: of PPOClipAgent.
          make_collect_policy: makes the policy that explores.
          reward_normalizer: whether rewards are divided by their deviation.
          keywords: of PPOClipAgent.
        """
        super().__init__(*arguments, **keywords)
        self._acting = make_collect_policy(self._collect_policy)
        self._rewards = RunningMoments([]) if reward_normalizer else None
        create_moments(self._optimizer, self._trained_variables())

    @property
    def collect_policy(self) -> tf_policy.TFPolicy:
        """The policy that draws actions."""
        return self._acting

    def prepare(self, sequences: StoredSequence) -> Nest:
        """Computes the values, returns and advantages of an iteration, see OnPolicyAgent."""
        return flatten_time(self._evaluate(sequences))

    def _evaluate(self, sequences: StoredSequence) -> Examples:
        """Updates the moments of rewards; returns env steps with advantages and returns, [F, T, ...]."""
        rewards = sequences.reward
        if self._rewards is not None:
            self._rewards.update(discounted_sums(sequences, self._discount_factor), sequences.valid)
            # After many rewards of 0, the deviation is small: without the clip, the first nonzero rewards
            # would dominate the loss.
            rewards = tf.clip_by_value(rewards / self._rewards.deviation, -_MAX_REWARD, _MAX_REWARD)
        values, next_values = self._values(sequences)
        advantages = generalized_advantages(
            sequences, rewards, values, next_values, self._discount_factor, self._lambda
        )
        return Examples(
            observation=sequences.observation,
            info=sequences.policy_info,
            advantage=advantages,
            returns=advantages + values,
            weight=tf.cast(sequences.valid, tf.float32),
        )

    def _values(self, sequences: StoredSequence) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the values of the observations and of the next observations, float32 [F, T] each."""
        shape = tf.shape(sequences.reward)
        both = [sequences.observation, sequences.next_observation]
        values, following = (self._value_net(flatten_time(part))[0] for part in both)
        return tf.reshape(values, shape), tf.reshape(following, shape)

    def _train(self, experience: Nest, weights: Any) -> LossInfo:
        """Takes one train step on a minibatch; `weights` are not used."""
        variables = self._trained_variables()
        with tf.GradientTape() as tape:
            loss = self._loss_of(experience)
        gradients = tape.gradient(loss.loss, variables)
        self._optimizer.apply_gradients(zip(gradients, variables, strict=True))
        self.train_step_counter.assign_add(1)
        # Extras are summed over replicas. The losses are parts of that sum already; this is a replica's mean.
        replicas = tf.distribute.get_replica_context().num_replicas_in_sync
        return loss._replace(extra=loss.extra._replace(clip_fraction=loss.extra.clip_fraction / replicas))

    def _loss_of(self, examples: Nest) -> LossInfo:
        return self.get_loss(
            time_steps_of(examples),
            examples.info.action,
            examples.info.log_probability,
            examples.returns,
            normalized(examples.advantage, examples.weight),
            (),
            examples.weight,
            self.train_step_counter,
            self._debug_summaries,
            training=True,
        )

    def _trained_variables(self) -> list[tf.Variable]:
        return [*self._actor_net.trainable_variables, *self._value_net.trainable_variables]


def normalized(advantages: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Returns advantages with mean 0 and deviation 1, weighted, over all replicas together."""
    count, total = summed_over_replicas([tf.reduce_sum(weights), tf.reduce_sum(weights * advantages)])
    count = tf.maximum(count, 1.0)
    mean = total / count
    (squares,) = summed_over_replicas([tf.reduce_sum(weights * tf.square(advantages - mean))])
    return (advantages - mean) / (tf.sqrt(squares / count) + 1e-8)


def time_steps_of(examples: Examples) -> ts.TimeStep:
    """Returns the observations in the form that TF-Agents' losses take."""
    zeros = tf.zeros_like(examples.weight)
    step_type = tf.fill(tf.shape(zeros), ts.StepType.MID)
    return ts.TimeStep(step_type, zeros, zeros + 1.0, examples.observation)


class CollectPolicy(tf_policy.TFPolicy):
    """Draws actions and clips them to their bounds; its info is a PolicyInfo, which the loss needs."""

    def __init__(self, policy: ppo_policy.PPOPolicy, state_spec: Nest | None = None) -> None:
        """Draws from the distributions of `policy`; `state_spec` replaces the spec of its state, if given."""
        spec = policy.action_spec
        info = PolicyInfo(tf.TensorSpec(spec.shape, spec.dtype), tf.TensorSpec([], tf.float32))
        state_spec = policy.policy_state_spec if state_spec is None else state_spec
        super().__init__(policy.time_step_spec, spec, state_spec, info)
        self._policy = policy

    def _variables(self) -> list[tf.Variable]:
        # Without the value network, which acting does not need.
        return list(self._policy._actor_network.variables)

    def _distribution(self, time_step: ts.TimeStep, policy_state: Nest) -> policy_step.PolicyStep:
        step = self._policy._distribution(time_step, policy_state)
        action = tf.cast(step.action.mode(), self.action_spec.dtype)
        return step._replace(info=PolicyInfo(action, step.action.log_prob(action)))

    def _action(self, time_step: ts.TimeStep, policy_state: Nest, seed: Any = None) -> policy_step.PolicyStep:
        step = self._distribution(time_step, policy_state)
        return self._clipped(step.action.sample(seed=seed), step.action, step.state)

    def _clipped(self, action: tf.Tensor, distribution: Any, state: Nest) -> policy_step.PolicyStep:
        """Returns the action clipped to its bounds; the info keeps the drawn action."""
        action = tf.cast(action, self.action_spec.dtype)
        info = PolicyInfo(action, distribution.log_prob(action))
        bounds = self.action_spec.minimum, self.action_spec.maximum
        return policy_step.PolicyStep(tf.clip_by_value(action, *bounds), state, info)
