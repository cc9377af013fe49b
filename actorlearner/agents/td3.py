"""TD3, for continuous actions: a deterministic policy with two critics and a delayed actor.

Details that matter:
- Two critics; targets use the smaller value, because one critic alone overestimates.
- The actor and the target networks are updated less often than the critics (`actor_update_period`,
  `target_update_period`), so that they follow values that have settled.
- Clipped noise on the targets' actions smooths the values between similar actions.
- Noise is given in halves of the action's range, as in the paper, and scaled here; TF-Agents takes it in the
  action's own units. Each environment of an actor explores with noise of its own (td3_agent.py).
- It trains on one device: the delayed actor update cannot be replicated.
"""

import dataclasses
from typing import TYPE_CHECKING

from actorlearner.agents.builder import AgentBuilder
from actorlearner.agents.checks import check_no_strategy, check_observation, continuous_action
from actorlearner.agents.ddpg import DdpgConfig, actor_network
from actorlearner.agents.optimizer import adam, create_moments
from actorlearner.agents.temporal_difference import critic_network, scale_to_actions, shared_arguments
from actorlearner.config.setting import setting

if TYPE_CHECKING:
    import tensorflow as tf
    from tf_agents.agents import tf_agent

    from actorlearner.agents.encoder import AgentSpecs


@dataclasses.dataclass(frozen=True)
class Td3Config(DdpgConfig):
    """The keys of TD3: those of DDPG, and some more.

    The defaults are those of "Addressing Function Approximation Error in Actor-Critic Methods"
    (Fujimoto et al. 2018, https://arxiv.org/abs/1802.09477, section 6.1 and supplement), with the
    256 x 256 networks and the learning rate of 3e-4 that its authors' code moved to.
    """

    name: str = setting("td3", "The algorithm: Twin Delayed DDPG, for continuous actions.")
    target_update_period: int = setting(
        2, "Train steps between two updates of the target networks.", at_least=1
    )
    actor_update_period: int = setting(
        2, "Train steps between two updates of the actor; each train step updates the critics.", at_least=1
    )
    target_policy_noise: float = setting(
        0.2,
        "Standard deviation of the normal noise on the actions in the targets, in halves of the action's "
        "range.",
        at_least=0,
    )
    target_policy_noise_clip: float = setting(
        0.5, "Bound of that noise, in halves of the action's range.", at_least=0
    )


class Td3Builder(AgentBuilder[Td3Config]):
    """Makes TF-Agents' TD3 agent, whose collect policy draws noise for each environment by itself."""

    config_class = Td3Config

    def make_agent(
        self, config: Td3Config, specs: "AgentSpecs", train_step: "tf.Variable"
    ) -> "tf_agent.TFAgent":
        """Makes the agent for all encoded observations and for actions of one bounded float vector."""
        from tf_agents.agents.ddpg.critic_network import CriticNetwork
        from tf_agents.agents.td3 import td3_agent

        from actorlearner.agents.td3_agent import BoundedCriticNetwork, IndependentNoise

        # TF-Agents applies the actor's gradients inside a conditional, where a replica cannot wait for the
        # others ("merge_call called while defining a new graph").
        check_no_strategy("td3", "its delayed actor update cannot be replicated")
        check_observation("td3", specs)
        action = continuous_action("td3", specs)
        layers = config.critic_joint_layers
        agent = td3_agent.Td3Agent(
            specs.time_step,
            specs.action,
            actor_network=actor_network(specs, config.actor_layers),
            critic_network=critic_network(specs, CriticNetwork, layers),
            critic_network_2=critic_network(specs, CriticNetwork, layers),
            target_critic_network=critic_network(specs, BoundedCriticNetwork, layers),
            target_critic_network_2=critic_network(specs, BoundedCriticNetwork, layers),
            actor_optimizer=adam(config.actor_learning_rate, config, train_step),
            critic_optimizer=adam(config.critic_learning_rate, config, train_step),
            target_policy_noise=scale_to_actions(config.target_policy_noise, action),
            target_policy_noise_clip=scale_to_actions(config.target_policy_noise_clip, action),
            actor_update_period=config.actor_update_period,
            **shared_arguments(config, train_step),
        )
        agent._collect_policy = IndependentNoise(agent, scale_to_actions(config.exploration_noise, action))
        critics = (agent._critic_network_1, agent._critic_network_2)
        create_moments(agent._actor_optimizer, agent._actor_network.trainable_variables)
        create_moments(agent._critic_optimizer, [v for critic in critics for v in critic.trainable_variables])
        return agent
