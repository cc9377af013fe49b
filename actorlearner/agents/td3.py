"""TD3, for continuous actions: a deterministic policy with two critics and a delayed actor.

Details that matter:
- Two critics; targets use the smaller value, because one critic alone overestimates.
- The actor and the target networks are updated less often than the critics (`actor_update_period`,
  `target_update_period`), so that they follow values that have settled.
- Clipped noise on the targets' actions smooths the values between similar actions.
- Noise is given in halves of the action's range, as in the paper, and scaled here; TF-Agents takes it in the
  action's own units. Each environment of an actor explores with noise of its own (`IndependentNoise`).
- It trains on one device: the delayed actor update cannot be replicated.
"""

import dataclasses
from typing import TYPE_CHECKING, Any

from actorlearner.agents.parts import (
    TemporalDifferenceConfig,
    adam,
    check_vector_observation,
    continuous_action,
    create_moments,
    critic_network,
    shared_arguments,
)
from actorlearner.config.schema import AgentConfig
from actorlearner.config.setting import setting
from actorlearner.errors import ConfigurationError

if TYPE_CHECKING:
    import tensorflow as tf
    from tf_agents.agents import tf_agent
    from tf_agents.policies import tf_policy

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
        2, "Train steps between two updates of the actor; each train step updates the critics.", at_least=1
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
        "Standard deviation of the normal noise on the actions in the targets, in halves of the action's "
        "range.",
        at_least=0,
    )
    target_policy_noise_clip: float = setting(
        0.5, "Bound of that noise, in halves of the action's range.", at_least=0
    )


class Td3Builder:
    """Makes TF-Agents' TD3 agent, whose collect policy draws noise for each environment by itself."""

    config_class: type[AgentConfig] = Td3Config

    def make_agent(
        self, config: AgentConfig, specs: "EnvironmentSpecs", train_step: "tf.Variable"
    ) -> "tf_agent.TFAgent":
        """Makes the agent for observations of one float vector and actions of one bounded float vector."""
        import numpy as np
        from tf_agents.agents.ddpg.actor_network import ActorNetwork
        from tf_agents.agents.td3 import td3_agent

        assert isinstance(config, Td3Config)
        _check_no_strategy()
        check_vector_observation("td3", specs)
        action = continuous_action("td3", specs)

        def in_action_units(noise: float) -> Any:
            """Returns a float32 scalar, or an array like the action: bounds may differ between elements."""
            return np.asarray(noise * (action.maximum - action.minimum) / 2, np.float32)

        agent = td3_agent.Td3Agent(
            specs.time_step,
            specs.action,
            actor_network=ActorNetwork(specs.observation, specs.action, fc_layer_params=config.actor_layers),
            critic_network=critic_network(specs, config.critic_joint_layers),
            actor_optimizer=adam(config.actor_learning_rate),
            critic_optimizer=adam(config.critic_learning_rate),
            target_policy_noise=in_action_units(config.target_policy_noise),
            target_policy_noise_clip=in_action_units(config.target_policy_noise_clip),
            actor_update_period=config.actor_update_period,
            **shared_arguments(config, train_step),
        )
        agent._collect_policy = _collect_policy(agent, in_action_units(config.exploration_noise))
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


def _collect_policy(agent: "tf_agent.TFAgent", noise: Any) -> "tf_policy.TFPolicy":
    """Returns the actor with normal noise; `noise` is a float32 scalar or has the shape of an action."""
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
