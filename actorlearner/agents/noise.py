"""Exploration noise for deterministic policies."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tf_agents.agents import tf_agent
    from tf_agents.policies import tf_policy
    from tf_agents.specs import tensor_spec


def scale_to_actions(noise: float, action: "tensor_spec.BoundedTensorSpec") -> Any:
    """Converts halves of the action's range to the action's own units.

    Returns a float32 scalar, or an array like the action: bounds may differ between elements.
    """
    import numpy as np

    return np.asarray(noise * (action.maximum - action.minimum) / 2, np.float32)


def independent_noise(agent: "tf_agent.TFAgent", noise: Any) -> "tf_policy.TFPolicy":
    """Returns the agent's actor with normal noise, which is clipped to the action's bounds.

    Args:
      agent: an agent with a deterministic actor network.
      noise: standard deviation in the action's units: a float32 scalar, or an array like the action.
    """
    import tensorflow_probability as tfp
    from tf_agents.policies import actor_policy, gaussian_policy
    from tf_agents.trajectories import policy_step
    from tf_agents.utils import nest_utils

    class IndependentNoise(gaussian_policy.GaussianPolicy):
        """Adds normal noise to each action of a batch by itself.

        TF-Agents draws it once for the whole batch, so that all environments of an actor would explore in the
        same direction at the same time.
        """

        def _action(self, time_step: Any, policy_state: Any, seed: Any) -> policy_step.PolicyStep:
            seeds = tfp.util.SeedStream(seed=seed, salt="independent_noise")
            step = self._wrapped_policy.action(time_step, policy_state, seeds())
            batch = nest_utils.get_outer_shape(time_step, self.time_step_spec)
            sample = self._noise_distribution.sample(batch, seed=seeds())
            return policy_step.PolicyStep(step.action + sample, step.state, step.info)

    actor = actor_policy.ActorPolicy(
        agent.time_step_spec, agent.action_spec, actor_network=agent._actor_network, clip=False
    )
    return IndependentNoise(actor, scale=noise, clip=True)
