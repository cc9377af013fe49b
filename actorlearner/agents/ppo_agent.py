"""The agent, the collect policy and the networks of PPO.

Import this only where TensorFlow may be imported.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from tf_agents.agents.ppo import ppo_clip_agent, ppo_policy
from tf_agents.agents.tf_agent import LossInfo
from tf_agents.networks import network
from tf_agents.policies import tf_policy
from tf_agents.trajectories import policy_step
from tf_agents.trajectories import time_step as ts

from actorlearner.agents.encoder import ObservationEncoder
from actorlearner.agents.experience import StoredSequence
from actorlearner.agents.normalizer import RunningMoments
from actorlearner.agents.on_policy import OnPolicyAgent, discounted_sums, flatten_time, generalized_advantages
from actorlearner.environments.environment import Nest
from actorlearner.environments.specs import EnvironmentSpecs

_NEVER = -1e9
"""The logit of an action that is not allowed."""


class PolicyInfo(NamedTuple):
    """What the collect policy gives with an action.

    Attributes:
      action: as the policy drew it, before it was clipped to its bounds.
      log_probability: float32, its logarithmic probability (density).
    """

    action: Any
    log_probability: Any


class Examples(NamedTuple):
    """Env steps to train on, [B, ...]: `weight` is 0 for those that must not be learned from."""

    observation: Nest
    info: PolicyInfo
    advantage: tf.Tensor
    returns: tf.Tensor
    value: tf.Tensor
    weight: tf.Tensor


class PpoAgent(ppo_clip_agent.PPOClipAgent, OnPolicyAgent):
    """TF-Agents' agent, which computes advantages once in an iteration and trains on minibatches of them."""

    def __init__(self, *arguments: Any, reward_normalizer: bool, **keywords: Any) -> None:
        """Makes a PPOClipAgent; `reward_normalizer`: whether rewards are divided by their deviation."""
        super().__init__(*arguments, **keywords)
        self._acting = CollectPolicy(self._collect_policy)
        self._rewards = RunningMoments([]) if reward_normalizer else None
        self._optimizer._create_all_weights(self._trained_variables())

    @property
    def collect_policy(self) -> tf_policy.TFPolicy:
        """The policy that draws actions."""
        return self._acting

    def prepare(self, sequences: StoredSequence) -> Examples:
        """Computes the values, returns and advantages of an iteration, see OnPolicyAgent."""
        rewards = sequences.reward
        if self._rewards is not None:
            self._rewards.update(discounted_sums(sequences, self._discount_factor), sequences.valid)
            rewards = rewards / self._rewards.deviation
        value, next_value = self._values(sequences.observation), self._values(sequences.next_observation)
        shape = tf.shape(rewards)
        values = tf.reshape(value, shape)
        advantages = generalized_advantages(
            sequences, rewards, values, tf.reshape(next_value, shape), self._discount_factor, self._lambda
        )
        examples = Examples(
            observation=sequences.observation,
            info=sequences.policy_info,
            advantage=advantages,
            returns=advantages + values,
            value=values,
            weight=tf.cast(sequences.valid, tf.float32),
        )
        return flatten_time(examples)

    def _values(self, observations: Nest) -> tf.Tensor:
        flat = flatten_time(observations)
        step_type = tf.fill(tf.shape(tf.nest.flatten(flat)[0])[:1], ts.StepType.MID)
        values, _ = self._value_net(flat, step_type, training=False)
        return values

    def _train(self, experience: Examples, weights: Any) -> LossInfo:
        """Takes one train step on a minibatch; `weights` are not used."""
        variables = self._trained_variables()
        with tf.GradientTape() as tape:
            loss = self._loss_of(experience)
        gradients = tape.gradient(loss.loss, variables)
        self._optimizer.apply_gradients(zip(gradients, variables, strict=True))
        self.train_step_counter.assign_add(1)
        # The losses are divided by the whole batch already; this is a mean over the replica's part.
        replicas = tf.distribute.get_replica_context().num_replicas_in_sync
        return loss._replace(extra=loss.extra._replace(clip_fraction=loss.extra.clip_fraction / replicas))

    def _loss_of(self, examples: Examples) -> LossInfo:
        zeros = tf.zeros_like(examples.weight)
        time_steps = ts.TimeStep(
            tf.fill(tf.shape(zeros), ts.StepType.MID), zeros, zeros + 1.0, examples.observation
        )
        return self.get_loss(
            time_steps,
            examples.info.action,
            examples.info.log_probability,
            examples.returns,
            _normalized(examples.advantage, examples.weight),
            (),
            examples.weight,
            self.train_step_counter,
            self._debug_summaries,
            old_value_predictions=examples.value,
            training=True,
        )

    def _trained_variables(self) -> list[tf.Variable]:
        return [*self._actor_net.trainable_variables, *self._value_net.trainable_variables]


def _normalized(advantages: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Returns advantages with mean 0 and deviation 1 over those with weight."""
    count = tf.maximum(tf.reduce_sum(weights), 1.0)
    mean = tf.reduce_sum(weights * advantages) / count
    variance = tf.reduce_sum(weights * tf.square(advantages - mean)) / count
    return (advantages - mean) / (tf.sqrt(variance) + 1e-8)


class CollectPolicy(tf_policy.TFPolicy):
    """Draws actions, clips them to their bounds, and gives what the loss needs as info."""

    def __init__(self, policy: ppo_policy.PPOPolicy) -> None:
        """Draws from the distributions of a PPOPolicy."""
        spec = policy.action_spec
        info = PolicyInfo(tf.TensorSpec(spec.shape, spec.dtype), tf.TensorSpec([], tf.float32))
        super().__init__(policy.time_step_spec, spec, policy.policy_state_spec, info)
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
        action = tf.cast(step.action.sample(seed=seed), self.action_spec.dtype)
        info = PolicyInfo(action, step.action.log_prob(action))
        bounds = self.action_spec.minimum, self.action_spec.maximum
        return policy_step.PolicyStep(tf.clip_by_value(action, *bounds), step.state, info)


class ActorNetwork(network.Network):
    """A network from observations to the distribution of one action."""

    def __init__(
        self,
        input_tensor_spec: Nest,
        specs: EnvironmentSpecs,
        layers: Sequence[int],
        initial_std: float,
        mask: str | None,
        name: str = "Actor",
    ) -> None:
        """Makes the layers.

        Args:
          input_tensor_spec: the specs of an observation.
          specs: of the environment; the action is one integer from 0 up, or a bounded float vector.
          layers: units of each hidden layer.
          initial_std: standard deviation of continuous actions at the beginning, in halves of their range.
          mask: the part of an observation that says which discrete actions are allowed; None if all are.
          name: of the network.
        """
        super().__init__(input_tensor_spec, state_spec=(), name=name)
        self._mask = mask
        action = specs.action
        self._discrete = action.dtype.is_integer
        self._dtype = action.dtype
        units = int(action.maximum) + 1 if self._discrete else int(action.shape[0])
        self._layers = [ObservationEncoder(specs), *(_hidden(count) for count in layers)]
        # A small last layer: the first policy does nearly the same everywhere.
        self._layers.append(tf.keras.layers.Dense(units, kernel_initializer=_orthogonal(0.01)))
        if not self._discrete:
            low, high = np.broadcast_to(action.minimum, [units]), np.broadcast_to(action.maximum, [units])
            self._center, self._range = (high + low) / 2, (high - low) / 2
            self._log_std = tf.Variable(tf.fill([units], math.log(initial_std)), name="log_std")

    def call(
        self, observation: Nest, step_type: Any = (), network_state: Any = (), training: bool = False
    ) -> Any:
        """Returns the distribution for a batch of observations, and the state."""
        output = observation
        for layer in self._layers:
            output = layer(output)
        if self._discrete:
            output = self._masked(output, observation)
            return tfp.distributions.Categorical(logits=output, dtype=self._dtype), network_state
        std = tf.exp(self._log_std) * self._range * tf.ones_like(output)
        mean = self._center + self._range * output
        return tfp.distributions.MultivariateNormalDiag(mean, std), network_state

    def _masked(self, logits: tf.Tensor, observation: Nest) -> tf.Tensor:
        if self._mask is None:
            return logits
        return tf.where(tf.cast(observation[self._mask], tf.bool), logits, _NEVER)


def actor_network(
    specs: EnvironmentSpecs, layers: Sequence[int], initial_std: float, mask: str | None
) -> network.Network:
    """Returns the actor network."""
    return ActorNetwork(specs.observation, specs, layers, initial_std, mask)


class ValueNetwork(network.Network):
    """A network from observations to their values."""

    def __init__(
        self, input_tensor_spec: Nest, specs: EnvironmentSpecs, layers: Sequence[int], name: str = "Value"
    ) -> None:
        """Makes the layers; `layers`: units of each hidden layer."""
        super().__init__(input_tensor_spec, state_spec=(), name=name)
        self._layers = [ObservationEncoder(specs), *(_hidden(count) for count in layers)]
        self._layers.append(tf.keras.layers.Dense(1, kernel_initializer=_orthogonal(1.0)))

    def call(
        self, observation: Nest, step_type: Any = (), network_state: Any = (), training: bool = False
    ) -> Any:
        """Returns the values of a batch of observations, float32 [batch], and the state."""
        output = observation
        for layer in self._layers:
            output = layer(output)
        return tf.squeeze(output, -1), network_state


def value_network(specs: EnvironmentSpecs, layers: Sequence[int]) -> network.Network:
    """Returns the value network."""
    return ValueNetwork(specs.observation, specs, layers)


def _hidden(units: int) -> tf.keras.layers.Layer:
    return tf.keras.layers.Dense(units, activation="tanh", kernel_initializer=_orthogonal(math.sqrt(2)))


def _orthogonal(gain: float) -> Any:
    return tf.keras.initializers.Orthogonal(gain)
