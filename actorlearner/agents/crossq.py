"""CrossQ, for continuous actions: a soft actor-critic with batch normalisation and without target networks.

Details that matter:
- Critics and actor have batch normalisation. A critic takes (s, a) and (s', a') in one batch: the same
  moments normalise both.
- There are no target networks: normalised critics are stable without.
- The weights of each hidden unit have norm 1, so that the learning rate stays effective
  (batch_normalized.py). The paper has no such projection; a later one of its authors adds it.
- The actor is updated less often than the critics (`actor_update_period`), which saves time.
- The policy acts with running moments, which are published with its variables.
- Each replica of a strategy normalises its own part of a batch.
"""

import dataclasses
from typing import TYPE_CHECKING

from actorlearner.agents.builder import AgentBuilder
from actorlearner.agents.parts import adam, check_observation, continuous_action
from actorlearner.config.problems import problem
from actorlearner.config.schema import AgentConfig
from actorlearner.config.setting import setting
from actorlearner.errors import ConfigurationError

if TYPE_CHECKING:
    import tensorflow as tf
    from tf_agents.agents import tf_agent

    from actorlearner.environments.specs import EnvironmentSpecs


@dataclasses.dataclass(frozen=True)
class CrossqConfig(AgentConfig):
    """The keys of CrossQ.

    ("CrossQ: Batch Normalization in Deep Reinforcement Learning for Greater Sample Efficiency and
    Simplicity", Bhatt et al. 2024, https://arxiv.org/abs/1902.05605.) The paper has critics of 2048 units,
    which few processors train fast, and a learning rate of 1e-3.
    """

    name: str = setting("crossq", "The algorithm: CrossQ, for continuous actions.")
    actor_layers: list[int] = setting([256, 256], "Units of each hidden layer of the actor.", at_least=1)
    critic_layers: list[int] = setting([256, 256], "Units of each hidden layer of both critics.", at_least=1)
    actor_learning_rate: float = setting(7.3e-4, "Adam's learning rate for the actor.", above=0)
    critic_learning_rate: float = setting(7.3e-4, "Adam's learning rate for both critics.", above=0)
    alpha_learning_rate: float = setting(
        7.3e-4, "Adam's learning rate for the logarithm of the temperature alpha.", above=0
    )
    actor_update_period: int = setting(
        3,
        "Train steps between two updates of the actor and alpha; each train step updates the critics. 1 with "
        "several replicas.",
        at_least=1,
    )
    initial_alpha: float = setting(
        1.0, "Temperature at the start: the weight of the policy's entropy against rewards.", above=0
    )
    target_entropy: float | None = setting(
        None,
        "Entropy of the policy, in nats, towards which alpha is adjusted. Null: minus half the number of "
        "action dimensions.",
    )


class CrossqBuilder(AgentBuilder):
    """Makes a CrossqAgent."""

    config_class: type[AgentConfig] = CrossqConfig

    def make_agent(
        self, config: AgentConfig, specs: "EnvironmentSpecs", train_step: "tf.Variable"
    ) -> "tf_agent.TFAgent":
        """Makes the agent for all encoded observations and for actions of one bounded float vector."""
        import tensorflow as tf

        from actorlearner.agents.batch_normalized import Actor, Critic
        from actorlearner.agents.crossq_agent import CrossqAgent, Optimizers

        assert isinstance(config, CrossqConfig)
        check_observation("crossq", specs)
        action = continuous_action("crossq", specs)
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        if replicas > 1 and config.actor_update_period > 1:
            # A conditional update cannot wait for the other replicas.
            wrong = f"{config.actor_update_period} cannot work with {replicas} replicas"
            raise ConfigurationError([problem("agent.actor_update_period", wrong, "", "1")])
        target_entropy = config.target_entropy
        if target_entropy is None:
            target_entropy = -action.shape.num_elements() / 2
        return CrossqAgent(
            specs,
            Actor(specs.observation, specs, config.actor_layers),
            (Critic(specs, config.critic_layers), Critic(specs, config.critic_layers)),
            Optimizers(
                actor=adam(config.actor_learning_rate, config, train_step),
                critic=adam(config.critic_learning_rate, config, train_step),
                alpha=adam(config.alpha_learning_rate, config, train_step),
            ),
            train_step,
            gamma=config.gamma,
            initial_alpha=config.initial_alpha,
            target_entropy=target_entropy,
            actor_update_period=config.actor_update_period,
        )
