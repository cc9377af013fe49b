"""Noise of actions that is a function of the state for several env steps: actions change smoothly.

A matrix E of normal numbers is drawn every few env steps, and when an episode begins. With the outputs h(s)
of the actor's last hidden layer, the noise is h(s) E. (gSDE: "Smooth Exploration for Robotic Reinforcement
Learning", Raffin et al. 2020, https://arxiv.org/abs/2005.05719.)

- PPO: an action is mean(s) + h(s) E; the deviations sigma_ij of E are learned. A single action is normally
  distributed around mean(s), with the variance sum_i h_i(s)^2 sigma_ij^2, which the loss uses.
- SAC: an action is tanh(mean(s) + std(s) h(s) E / |h(s)|). A single action has the same distribution as
  without smooth noise, so SAC's losses do not change. (The paper learns sigma here, too.)

Import this only where TensorFlow may be imported.
"""

from typing import TYPE_CHECKING, Any

import tensorflow as tf
from tf_agents.agents.ppo import ppo_policy
from tf_agents.policies import tf_policy
from tf_agents.trajectories import policy_step
from tf_agents.trajectories import time_step as ts

from actorlearner.agents.encoder import EncodedNetwork
from actorlearner.agents.ppo_agent import CollectPolicy
from actorlearner.environments.environment import Nest

if TYPE_CHECKING:
    from tf_agents.agents.sac import sac_agent


def noise_spec(hidden_units: int, actions: int) -> dict[str, tf.TensorSpec]:
    """Returns the spec of the policy's state: E without its deviations, and its age in env steps."""
    return {"noise": tf.TensorSpec([hidden_units, actions], tf.float32), "age": tf.TensorSpec([], tf.int32)}


def next_noise(state: dict[str, tf.Tensor], interval: int, seed: Any) -> dict[str, tf.Tensor]:
    """Returns the policy's next state: each environment draws a new E every `interval` env steps.

    An episode begins with the age 0, and so with a new E.
    """
    noise, age = state["noise"], state["age"]
    fresh = tf.random.normal(tf.shape(noise), seed=seed)
    due = (age % interval == 0)[:, tf.newaxis, tf.newaxis]
    return {"noise": tf.where(due, fresh, noise), "age": age + 1}


class PpoSmoothNoise(CollectPolicy):
    """PPO's collect policy with smooth noise."""

    def __init__(self, policy: ppo_policy.PPOPolicy, interval: int) -> None:
        """Takes the distributions of a PPOPolicy; E is drawn again every `interval` env steps."""
        network = policy._actor_network
        super().__init__(policy, noise_spec(*network.noise_shape))
        self._network = network
        self._interval = interval

    def _distribution(self, time_step: ts.TimeStep, policy_state: Nest) -> policy_step.PolicyStep:
        return super()._distribution(time_step, ())._replace(state=policy_state)

    def _action(self, time_step: ts.TimeStep, policy_state: Nest, seed: Any = None) -> policy_step.PolicyStep:
        hidden, _ = self._network.body(time_step.observation, ())
        state = next_noise(policy_state, self._interval, seed)
        distribution = self._network.head(hidden, time_step.observation)
        action = distribution.mode() + self._network.deviation(hidden, state["noise"])
        return self._clipped(action, distribution, state)


class SacSmoothNoise(tf_policy.TFPolicy):
    """SAC's collect policy with smooth noise."""

    def __init__(self, agent: "sac_agent.SacAgent", interval: int) -> None:
        """Takes the agent's actor; E is drawn again every `interval` env steps."""
        network = agent._actor_network
        self._encoder = network.encoder if isinstance(network, EncodedNetwork) else None
        self._network = network if self._encoder is None else network.network
        hidden_units = int(self._network._projection_networks._projection_layer.kernel.shape[0])
        spec = noise_spec(hidden_units, int(agent.action_spec.shape[0]))
        super().__init__(agent.time_step_spec, agent.action_spec, spec)
        self._actor_variables = list(network.variables)
        self._interval = interval

    def _variables(self) -> list[tf.Variable]:
        return self._actor_variables

    def _distribution(self, time_step: ts.TimeStep, policy_state: Nest) -> policy_step.PolicyStep:
        return policy_step.PolicyStep(self._hidden_and_distribution(time_step)[1], policy_state)

    def _action(self, time_step: ts.TimeStep, policy_state: Nest, seed: Any = None) -> policy_step.PolicyStep:
        hidden, squashed = self._hidden_and_distribution(time_step)
        state = next_noise(policy_state, self._interval, seed)
        noise = tf.einsum("bh,bha->ba", tf.math.l2_normalize(hidden, axis=1), state["noise"])
        normal = squashed.input_distribution
        drawn = normal.mean() + normal.stddev() * noise
        action = squashed.action_means + squashed.action_magnitudes * tf.tanh(drawn)
        return policy_step.PolicyStep(action, state)

    def _hidden_and_distribution(self, time_step: ts.TimeStep) -> tuple[tf.Tensor, Any]:
        """Returns the outputs of the last hidden layer, and the squashed distribution of the action."""
        encoding = time_step.observation if self._encoder is None else self._encoder(time_step.observation)
        hidden, _ = self._network._encoder(encoding)
        distribution, _ = self._network._projection_networks(hidden, outer_rank=1)
        return hidden, distribution
