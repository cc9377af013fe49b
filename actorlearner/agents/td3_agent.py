"""The target critics of TD3, and the exploration noise of TD3 and DDPG."""

from typing import Any

import tensorflow_probability as tfp
from tf_agents.agents import tf_agent
from tf_agents.agents.ddpg.critic_network import CriticNetwork
from tf_agents.policies import actor_policy, gaussian_policy
from tf_agents.trajectories import policy_step
from tf_agents.utils import common, nest_utils


class BoundedCriticNetwork(CriticNetwork):
    """A critic that clips actions to their bounds.

    TF-Agents adds noise to the actions of targets and does not clip the sum; TD3's authors do. Replay has no
    actions beyond the bounds, so nothing would correct the critics there.
    """

    def call(
        self, inputs: Any, step_type: Any = (), network_state: Any = (), training: bool = False
    ) -> tuple[Any, Any]:
        """Returns the values, [batch], of observations and actions, and the network state."""
        observation, action = inputs
        bounded = common.clip_to_spec(action, self.input_tensor_spec[1])
        return super().call((observation, bounded), step_type, network_state, training)


class IndependentNoise(gaussian_policy.GaussianPolicy):
    """An agent's actor with normal noise, which is clipped to the action's bounds.

    TF-Agents draws one noise for the whole batch, so all environments of an actor would explore in the same
    direction at the same time. This policy draws noise for each environment.
    """

    def __init__(self, agent: tf_agent.TFAgent, noise: Any) -> None:
        """Takes the deterministic actor network of an agent.

        Args:
          agent: the agent.
          noise: standard deviation in the action's units: a float32 scalar, or an array like the action.
        """
        actor = actor_policy.ActorPolicy(
            agent.time_step_spec, agent.action_spec, actor_network=agent._actor_network, clip=False
        )
        super().__init__(actor, scale=noise, clip=True)

    def _action(self, time_step: Any, policy_state: Any, seed: Any) -> policy_step.PolicyStep:
        seeds = tfp.util.SeedStream(seed=seed, salt="independent_noise")
        step = self._wrapped_policy.action(time_step, policy_state, seeds())
        batch = nest_utils.get_outer_shape(time_step, self.time_step_spec)
        sample = self._noise_distribution.sample(batch, seed=seeds())
        return policy_step.PolicyStep(step.action + sample, step.state, step.info)
