"""TF-Agents' TD3 agent, with exploration that differs between the environments of an actor."""

from typing import Any

import tensorflow_probability as tfp
from tf_agents.agents.td3 import td3_agent
from tf_agents.policies import actor_policy, gaussian_policy
from tf_agents.trajectories import policy_step
from tf_agents.utils import nest_utils


class Td3Agent(td3_agent.Td3Agent):
    """Its collect policy draws noise for each action of a batch; all else is TF-Agents'."""

    def __init__(self, *arguments: Any, exploration_noise_std: Any, **options: Any) -> None:
        """Takes what TF-Agents' agent takes; the noise is a scalar or has the shape of an action."""
        super().__init__(*arguments, exploration_noise_std=exploration_noise_std, **options)
        actor = actor_policy.ActorPolicy(
            self.time_step_spec, self.action_spec, actor_network=self._actor_network, clip=False
        )
        self._collect_policy = IndependentNoise(actor, scale=exploration_noise_std, clip=True)


class IndependentNoise(gaussian_policy.GaussianPolicy):
    """Adds normal noise to each action of a batch by itself.

    TF-Agents' own draws it once for the whole batch: the environments of an actor would all explore in the
    same direction at the same time.
    """

    def _action(self, time_step: Any, policy_state: Any, seed: Any) -> policy_step.PolicyStep:
        seeds = tfp.util.SeedStream(seed=seed, salt="independent_noise")
        step = self._wrapped_policy.action(time_step, policy_state, seeds())
        batch = nest_utils.get_outer_shape(time_step, self.time_step_spec)
        noise = self._noise_distribution.sample(batch, seed=seeds())
        return policy_step.PolicyStep(step.action + noise, step.state, step.info)
