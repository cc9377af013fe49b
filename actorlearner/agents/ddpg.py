"""DDPG, for continuous actions: a deterministic policy with one critic.

Details that matter:
- One critic overestimates; TD3 is this algorithm with two of them and smoothed targets, and usually better.
- Exploration adds normal noise to each action, as the authors of TD3 do, and not the correlated noise of the
  paper. Noise is given in halves of the action's range.
- It trains on one device: TF-Agents does not divide its losses by the number of replicas.
"""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from actorlearner.agents.builder import AgentBuilder
from actorlearner.agents.checks import check_no_strategy, check_observation, continuous_action
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
    from tf_agents.networks import network

    from actorlearner.agents.encoder import AgentSpecs


@dataclasses.dataclass(frozen=True)
class DdpgConfig(TemporalDifferenceConfig):
    """The keys of DDPG.

    The defaults are those of "our DDPG" in "Addressing Function Approximation Error in Actor-Critic Methods"
    (Fujimoto et al. 2018, https://arxiv.org/abs/1802.09477, supplement): its networks and learning rate are
    those of TD3. DDPG itself is "Continuous control with deep reinforcement learning" (Lillicrap et al. 2015,
    https://arxiv.org/abs/1509.02971).
    """

    name: str = setting("ddpg", "The algorithm: Deep Deterministic Policy Gradient, for continuous actions.")
    actor_layers: list[int] = setting([256, 256], "Units of each hidden layer of the actor.", at_least=1)
    critic_joint_layers: list[int] = setting(
        [256, 256], "Units of each hidden layer of each critic.", at_least=1
    )
    actor_learning_rate: float = setting(3e-4, "Adam's learning rate for the actor.", above=0)
    critic_learning_rate: float = setting(3e-4, "Adam's learning rate for the critics.", above=0)
    exploration_noise: float = setting(
        0.1,
        "Standard deviation of the normal noise on collected actions, in halves of the action's range.",
        at_least=0,
    )


class DdpgBuilder(AgentBuilder[DdpgConfig]):
    """Makes TF-Agents' DDPG agent, whose collect policy draws noise for each environment by itself."""

    config_class = DdpgConfig

    def make_agent(
        self, config: DdpgConfig, specs: "AgentSpecs", train_step: "tf.Variable"
    ) -> "tf_agent.TFAgent":
        """Makes the agent for all encoded observations and for actions of one bounded float vector."""
        from tf_agents.agents.ddpg import ddpg_agent
        from tf_agents.agents.ddpg.critic_network import CriticNetwork

        from actorlearner.agents.td3_agent import IndependentNoise

        check_no_strategy("ddpg", "its losses are not divided by the number of replicas")
        check_observation("ddpg", specs)
        action = continuous_action("ddpg", specs)
        agent = ddpg_agent.DdpgAgent(
            specs.time_step,
            specs.action,
            actor_network=actor_network(specs, config.actor_layers),
            critic_network=critic_network(specs, CriticNetwork, config.critic_joint_layers),
            actor_optimizer=adam(config.actor_learning_rate, config, train_step),
            critic_optimizer=adam(config.critic_learning_rate, config, train_step),
            **shared_arguments(config, train_step),
        )
        agent._collect_policy = IndependentNoise(agent, scale_to_actions(config.exploration_noise, action))
        create_moments(agent._actor_optimizer, agent._actor_network.trainable_variables)
        create_moments(agent._critic_optimizer, agent._critic_network.trainable_variables)
        return agent


def actor_network(specs: "AgentSpecs", layers: Sequence[int]) -> "network.Network":
    """Returns the network from an observation to an action; `layers`: units of each hidden layer."""
    from tf_agents.agents.ddpg.actor_network import ActorNetwork

    from actorlearner.agents.encoder import encoded

    return encoded(specs, lambda spec: ActorNetwork(spec, specs.action, fc_layer_params=layers))
