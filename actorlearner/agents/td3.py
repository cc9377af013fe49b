"""TD3: a deterministic policy for continuous actions with twin critics and a delayed actor."""

import dataclasses
from typing import TYPE_CHECKING, Any

from actorlearner.agents.parts import (
    TemporalDifferenceConfig,
    adam,
    check_vector_observation,
    continuous_action,
    create_moments,
    td_loss_function,
)
from actorlearner.config.schema import AgentConfig
from actorlearner.config.setting import setting
from actorlearner.errors import ConfigurationError

if TYPE_CHECKING:
    import tensorflow as tf
    from tf_agents.agents import tf_agent
    from tf_agents.networks import network

    from actorlearner.environments.specs import EnvironmentSpecs


@dataclasses.dataclass(frozen=True)
class Td3Config(TemporalDifferenceConfig):
    """The keys of TD3.

    The defaults are those of "Addressing Function Approximation Error in Actor-Critic Methods"
    (Fujimoto et al. 2018, https://arxiv.org/abs/1802.09477, section 6.1 and supplement), with the
    256 x 256 networks and the learning rate of 3e-4 that its authors' code moved to.
    """

    name: str = setting("td3", "The algorithm: Twin Delayed DDPG, for continuous actions.")
    target_update_period: int = setting(
        2, "Train steps between two updates of the target networks.", at_least=1
    )
    actor_update_period: int = setting(
        2, "Train steps between two updates of the actor; the critics are updated in each.", at_least=1
    )
    actor_layers: list[int] = setting([256, 256], "Units of each hidden layer of the actor.", at_least=1)
    critic_joint_layers: list[int] = setting(
        [256, 256], "Units of each hidden layer of both critics.", at_least=1
    )
    actor_learning_rate: float = setting(3e-4, "Adam's learning rate for the actor.", above=0)
    critic_learning_rate: float = setting(3e-4, "Adam's learning rate for both critics.", above=0)
    exploration_noise: float = setting(
        0.1,
        "Standard deviation of the normal noise on collected actions, in halves of the action's range.",
        at_least=0,
    )
    target_policy_noise: float = setting(
        0.2,
        "Standard deviation of the normal noise on the actions that targets are computed with, in "
        "halves of the action's range.",
        at_least=0,
    )
    target_policy_noise_clip: float = setting(
        0.5, "Bound of that noise, in halves of the action's range.", at_least=0
    )


class Td3Builder:
    """Makes TF-Agents' TD3 agent; noise is scaled to the action's range, as in the paper."""

    config_class: type[AgentConfig] = Td3Config

    def make_agent(
        self, config: AgentConfig, specs: "EnvironmentSpecs", train_step: "tf.Variable"
    ) -> "tf_agent.TFAgent":
        """See AgentBuilder: needs float vectors as observations and as actions, these bounded."""
        from actorlearner.agents.td3_agent import Td3Agent

        assert isinstance(config, Td3Config)
        _check_no_strategy()
        check_vector_observation("td3", specs)
        action = continuous_action("td3", specs)
        # TF-Agents takes noise in the action's own units; bounds may differ between its elements.
        half_range = (action.maximum - action.minimum) / 2
        agent = Td3Agent(
            specs.time_step,
            specs.action,
            actor_network=_actor_network(config, specs),
            critic_network=_critic_network(config, specs),
            actor_optimizer=adam(config.actor_learning_rate),
            critic_optimizer=adam(config.critic_learning_rate),
            exploration_noise_std=_scaled(config.exploration_noise, half_range),
            target_policy_noise=_scaled(config.target_policy_noise, half_range),
            target_policy_noise_clip=_scaled(config.target_policy_noise_clip, half_range),
            target_update_tau=config.target_update_tau,
            target_update_period=config.target_update_period,
            actor_update_period=config.actor_update_period,
            td_errors_loss_fn=td_loss_function(config.td_loss),
            gamma=config.gamma,
            reward_scale_factor=config.reward_scale,
            gradient_clipping=config.gradient_clipping,
            debug_summaries=config.debug_summaries,
            summarize_grads_and_vars=config.gradient_summaries,
            train_step_counter=train_step,
        )
        critics = (agent._critic_network_1, agent._critic_network_2)
        create_moments(agent._actor_optimizer, agent._actor_network.trainable_variables)
        create_moments(agent._critic_optimizer, [v for critic in critics for v in critic.trainable_variables])
        return agent


def _check_no_strategy() -> None:
    """Refuses replicas.

    TF-Agents applies the actor's gradients inside a conditional, where a replica cannot wait for the
    others ("merge_call called while defining a new graph").
    """
    import tensorflow as tf

    if tf.distribute.has_strategy():
        line = (
            "learn.strategy: td3 trains on one device, because its delayed actor update cannot be replicated"
        )
        raise ConfigurationError([f"{line}; allowed: default"])


def _scaled(factor: float, half_range: Any) -> Any:
    """Noise in the units of each action element, float32, a scalar or the shape of the action."""
    import numpy as np

    return np.asarray(factor * half_range, np.float32)


def _actor_network(config: Td3Config, specs: "EnvironmentSpecs") -> "network.Network":
    """Observation to an action, squashed by tanh into its bounds."""
    from tf_agents.agents.ddpg import actor_network

    return actor_network.ActorNetwork(specs.observation, specs.action, fc_layer_params=config.actor_layers)


def _critic_network(config: Td3Config, specs: "EnvironmentSpecs") -> "network.Network":
    """Observation and action to Q; the agent makes the second critic and the targets from it."""
    from tf_agents.agents.ddpg import critic_network

    return critic_network.CriticNetwork(
        (specs.observation, specs.action),
        joint_fc_layer_params=config.critic_joint_layers,
        kernel_initializer="glorot_uniform",
        last_kernel_initializer="glorot_uniform",
    )
