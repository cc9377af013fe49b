"""Soft Actor-Critic, for continuous actions: a stochastic policy that maximises rewards and its own entropy.

Details that matter:
- Two critics; targets use the smaller value, because one critic alone overestimates.
- `critic_layer_norm` reduces the overestimation of actions that are not in replay (Ball et al. 2023,
  https://arxiv.org/abs/2302.02948, section 4.2).
- The temperature alpha, the weight of the entropy, is learned (as its logarithm), so that the policy's
  entropy approaches `target_entropy`.
- Actions are squashed by tanh into their bounds, and the standard deviation before that is clipped.
- The gradients of the critics are applied in one order in every process (`SacAgent`).
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from actorlearner.agents.builder import AgentBuilder
from actorlearner.agents.checks import check_observation, continuous_action
from actorlearner.agents.optimizer import adam, create_moments
from actorlearner.agents.temporal_difference import (
    TemporalDifferenceConfig,
    critic_network,
    scale_to_actions,
    shared_arguments,
)
from actorlearner.config.setting import setting

if TYPE_CHECKING:
    import tensorflow as tf
    from tf_agents.agents import tf_agent
    from tf_agents.agents.sac import sac_agent
    from tf_agents.networks import network
    from tf_agents.specs import tensor_spec

    from actorlearner.agents.encoder import AgentSpecs


@dataclasses.dataclass(frozen=True)
class SacConfig(TemporalDifferenceConfig):
    """The keys of SAC.

    The defaults are those of "Soft Actor-Critic Algorithms and Applications" (Haarnoja et al. 2019,
    https://arxiv.org/abs/1812.05905, table 1), except for the target entropy.
    """

    name: str = setting("sac", "The algorithm: Soft Actor-Critic, for continuous actions.")
    actor_layers: list[int] = setting([256, 256], "Units of each hidden layer of the actor.", at_least=1)
    critic_observation_layers: list[int] = setting(
        [], "Units of each layer for the observation alone, in both critics.", at_least=1
    )
    critic_action_layers: list[int] = setting(
        [], "Units of each layer for the action alone, in both critics.", at_least=1
    )
    critic_joint_layers: list[int] = setting(
        [256, 256], "Units of each hidden layer for both together, in both critics.", at_least=1
    )
    critic_layer_norm: bool = setting(
        False,
        "Give the units of each hidden layer of both critics mean 0 and deviation 1 for each example, before "
        "ReLU. It reduces overestimation.",
    )
    actor_learning_rate: float = setting(3e-4, "Adam's learning rate for the actor.", above=0)
    critic_learning_rate: float = setting(3e-4, "Adam's learning rate for both critics.", above=0)
    alpha_learning_rate: float = setting(
        3e-4, "Adam's learning rate for the logarithm of the temperature alpha.", above=0
    )
    initial_alpha: float = setting(
        1.0, "Temperature at the start: the weight of the policy's entropy against rewards.", above=0
    )
    target_entropy: float | None = setting(
        None,
        "Entropy of the policy, in nats for actions scaled to -1..1, towards which alpha is adjusted. Null: "
        "minus half the number of action dimensions, which TF-Agents found stabler than the paper's minus "
        "that number.",
    )
    noise_interval: int | None = setting(
        None,
        "Env steps for which the noise of collected actions stays the same function of the state, so that "
        "actions change smoothly. Null: new noise in each env step, independent of the state.",
        at_least=1,
    )


class SacBuilder(AgentBuilder[SacConfig]):
    """Makes TF-Agents' SAC agent with the networks of its Minitaur tutorial."""

    config_class = SacConfig

    def agent_factory(self, config: SacConfig) -> "Callable[..., sac_agent.SacAgent]":
        """Returns the class of the agent, or a function with the arguments of SacAgent."""
        from actorlearner.agents.sac_agent import SacAgent

        return SacAgent

    def critic_factory(self, config: SacConfig) -> "Callable[..., network.Network]":
        """Returns the class of the critics, or a function with the arguments of CriticNetwork."""
        from tf_agents.agents.ddpg.critic_network import CriticNetwork

        return CriticNetwork

    def make_agent(
        self, config: SacConfig, specs: "AgentSpecs", train_step: "tf.Variable"
    ) -> "tf_agent.TFAgent":
        """Makes the agent for all encoded observations and for actions of one bounded float vector."""
        check_observation(config.name, specs)
        action = continuous_action(config.name, specs)
        agent = self.agent_factory(config)(
            specs.time_step,
            specs.action,
            critic_network=critic_network(
                specs,
                self.critic_factory(config),
                config.critic_joint_layers,
                config.critic_observation_layers,
                config.critic_action_layers,
                layer_norm=config.critic_layer_norm,
            ),
            actor_network=_actor_network(config, specs),
            actor_optimizer=adam(config.actor_learning_rate, config, train_step),
            critic_optimizer=adam(config.critic_learning_rate, config, train_step),
            alpha_optimizer=adam(config.alpha_learning_rate, config, train_step),
            initial_log_alpha=math.log(config.initial_alpha),
            target_entropy=_target_entropy(config, action),
            **shared_arguments(config, train_step),
        )
        if config.noise_interval is not None:
            from actorlearner.agents.smooth_noise import SacSmoothNoise

            agent._collect_policy = SacSmoothNoise(agent, config.noise_interval)
        critics = (agent._critic_network_1, agent._critic_network_2)
        create_moments(agent._actor_optimizer, agent._actor_network.trainable_variables)
        create_moments(agent._critic_optimizer, [v for critic in critics for v in critic.trainable_variables])
        create_moments(agent._alpha_optimizer, [agent._log_alpha])
        return agent


def _target_entropy(config: SacConfig, action: "tensor_spec.BoundedTensorSpec") -> float:
    """Returns the target in the action's own units, in which the agent measures entropy."""
    import numpy as np

    scaled = -action.shape.num_elements() / 2 if config.target_entropy is None else config.target_entropy
    half_range = np.broadcast_to(scale_to_actions(1.0, action), action.shape)
    return scaled + float(np.sum(np.log(half_range)))


def _actor_network(config: SacConfig, specs: "AgentSpecs") -> "network.Network":
    """Returns the network from an observation to a tanh-squashed normal distribution.

    The logarithm of the standard deviation is clipped to [-20, 2], as in the code of SAC's authors. Without
    clipping, the projection's default, one large output makes the deviation overflow or become 0.
    """
    from tf_agents.agents.sac import sac_agent, tanh_normal_projection_network
    from tf_agents.networks import actor_distribution_network

    from actorlearner.agents.encoder import encoded

    def make(observation: "tf.TensorSpec") -> "network.Network":
        return actor_distribution_network.ActorDistributionNetwork(
            observation,
            specs.action,
            fc_layer_params=config.actor_layers,
            continuous_projection_net=functools.partial(
                tanh_normal_projection_network.TanhNormalProjectionNetwork,
                std_transform=sac_agent.std_clip_transform,
            ),
        )

    return encoded(specs, make)
