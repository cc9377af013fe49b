"""Noise of PPO's actions that is a function of the state for several env steps: actions change smoothly.

With the outputs h(s) of the actor's last hidden layer, an action is mean(s) + h(s) E. The elements of the
matrix E are drawn from N(0, sigma_ij^2) every few env steps, and when an episode begins. Seen alone, an
action is normal around mean(s), with the variance sum_i h_i(s)^2 sigma_ij^2, which the loss uses.
("Smooth Exploration for Robotic Reinforcement Learning", Raffin et al. 2020,
https://arxiv.org/abs/2005.05719, section 4: gSDE.)
Import this only where TensorFlow may be imported.
"""

from typing import Any

import tensorflow as tf
from tf_agents.agents.ppo import ppo_policy
from tf_agents.trajectories import policy_step
from tf_agents.trajectories import time_step as ts

from actorlearner.agents.ppo_agent import CollectPolicy
from actorlearner.environments.environment import Nest


def noise_spec(hidden_units: int, actions: int) -> dict[str, tf.TensorSpec]:
    """Returns the spec of the policy's state: E without its deviations, and its age in env steps."""
    return {"noise": tf.TensorSpec([hidden_units, actions], tf.float32), "age": tf.TensorSpec([], tf.int32)}


class SmoothNoise(CollectPolicy):
    """Draws E for each environment by itself; an episode begins with the age 0, and so with a new one."""

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
        noise, age = policy_state["noise"], policy_state["age"]
        fresh = tf.random.normal(tf.shape(noise), seed=seed)
        noise = tf.where((age % self._interval == 0)[:, tf.newaxis, tf.newaxis], fresh, noise)
        distribution = self._network.head(hidden, time_step.observation)
        action = distribution.mode() + self._network.deviation(hidden, noise)
        state = {"noise": noise, "age": age + 1}
        return self._clipped(action, distribution, state)
