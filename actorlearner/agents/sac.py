"""Soft Actor-Critic, for continuous actions: a stochastic policy that maximises rewards and its own entropy.

Details that matter:
- Two critics; targets use the smaller value, because one critic alone overestimates.
- The temperature alpha, the weight of the entropy, is learned (as its logarithm), so that the policy's
  entropy approaches `target_entropy`.
- Actions are squashed by tanh into their bounds, and the standard deviation before that is clipped.
- The gradients of the critics are applied in one order in every process (`OrderedSacAgent`).
"""

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from actorlearner.agents.builder import AgentBuilder
from actorlearner.agents.parts import (
    TemporalDifferenceConfig,
    adam,
    check_observation,
    continuous_action,
    create_moments,
    critic_network,
    shared_arguments,
)
from actorlearner.config.schema import AgentConfig
from actorlearner.config.setting import setting

if TYPE_CHECKING:
    import tensorflow as tf
    from tf_agents.agents import tf_agent
    from tf_agents.agents.sac import sac_agent
    from tf_agents.networks import network

    from actorlearner.environments.specs import EnvironmentSpecs


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
        "Entropy of the policy, in nats, towards which alpha is adjusted. Null: minus half the number of "
        "action dimensions, which TF-Agents found stabler than the paper's minus that number.",
    )


class SacBuilder(AgentBuilder):
    """Makes TF-Agents' SAC agent with the networks of its Minitaur tutorial."""

    config_class: type[AgentConfig] = SacConfig

    def make_agent(
        self, config: AgentConfig, specs: "EnvironmentSpecs", train_step: "tf.Variable"
    ) -> "tf_agent.TFAgent":
        """Makes the agent for all encoded observations and for actions of one bounded float vector."""
        assert isinstance(config, SacConfig)
        check_observation("sac", specs)
        continuous_action("sac", specs)
        agent = _agent_class()(
            specs.time_step,
            specs.action,
            critic_network=critic_network(
                specs,
                config.critic_joint_layers,
                config.critic_observation_layers,
                config.critic_action_layers,
            ),
            actor_network=_actor_network(config, specs),
            actor_optimizer=adam(config.actor_learning_rate, config, train_step),
            critic_optimizer=adam(config.critic_learning_rate, config, train_step),
            alpha_optimizer=adam(config.alpha_learning_rate, config, train_step),
            initial_log_alpha=math.log(config.initial_alpha),
            target_entropy=config.target_entropy,
            **shared_arguments(config, train_step),
        )
        critics = (agent._critic_network_1, agent._critic_network_2)
        create_moments(agent._actor_optimizer, agent._actor_network.trainable_variables)
        create_moments(agent._critic_optimizer, [v for critic in critics for v in critic.trainable_variables])
        create_moments(agent._alpha_optimizer, [agent._log_alpha])
        return agent


class SacLosses(NamedTuple):
    """The scalars of a train step."""

    critic_loss: Any
    actor_loss: Any
    alpha_loss: Any
    q_value: Any
    entropy: Any
    alpha: Any


def _agent_class() -> "type[sac_agent.SacAgent]":
    """Returns TF-Agents' SAC agent with two additions.

    - It has the same order of the critics' variables in every process. TF-Agents puts them into a set, whose
      order depends on their addresses in memory. A group of learners sums its gradients by position, so it
      would sum gradients of different variables.
    - It reports Q values, entropy and alpha: they show whether critics overestimate or exploration has died.
    """
    import tensorflow as tf
    from tf_agents.agents.sac import sac_agent

    class OrderedSacAgent(sac_agent.SacAgent):
        _entropy: Any = None

        def _train(self, experience: Any, weights: Any) -> Any:
            alpha = tf.exp(self._log_alpha)
            info = super()._train(experience, weights)
            replicas = tf.distribute.get_replica_context().num_replicas_in_sync
            entropy = self._entropy / replicas  # The sum over the replicas is reported.
            q_value = -info.extra.actor_loss - alpha * entropy
            return info._replace(
                extra=SacLosses(
                    **info.extra._asdict(), q_value=q_value, entropy=entropy, alpha=alpha / replicas
                )
            )

        def _actions_and_log_probs(self, time_steps: Any, training: bool = False) -> Any:
            action, log_probability = super()._actions_and_log_probs(time_steps, training)
            self._entropy = -tf.reduce_mean(log_probability)
            return action, log_probability

        def _apply_gradients(self, gradients: Any, variables: Any, optimizer: Any) -> None:
            networks = (self._critic_network_1, self._critic_network_2, self._actor_network)
            known = [id(variable) for network in networks for variable in network.trainable_variables]
            place = {identity: number for number, identity in enumerate([*known, id(self._log_alpha)])}
            pairs = sorted(zip(gradients, variables, strict=True), key=lambda pair: place[id(pair[1])])
            super()._apply_gradients(*zip(*pairs, strict=True), optimizer)

    return OrderedSacAgent


def _actor_network(config: SacConfig, specs: "EnvironmentSpecs") -> "network.Network":
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
