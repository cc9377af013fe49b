"""An algorithm of your own: Double DQN with a dueling network (https://arxiv.org/abs/1511.06581).

Start it from the root of the repository:
.venv/bin/actorlearner local --config examples/dueling_dqn.yaml
"""

import dataclasses
from typing import Any

from actorlearner.agents.builder import AgentBuilder
from actorlearner.agents.checks import check_discrete_action, check_observation
from actorlearner.agents.optimizer import adam, create_moments
from actorlearner.agents.temporal_difference import TemporalDifferenceConfig, shared_arguments
from actorlearner.config.setting import setting


@dataclasses.dataclass(frozen=True)
class DuelingDqnConfig(TemporalDifferenceConfig):
    """The keys of the algorithm, in addition to those that it inherits."""

    layers: list[int] = setting([128], "Units of each hidden layer.", at_least=1)
    learning_rate: float = setting(1e-3, "Adam's learning rate.", above=0)
    epsilon: float = setting(0.1, "Probability of a random action.", at_least=0, at_most=1)


class DuelingDqnBuilder(AgentBuilder[DuelingDqnConfig]):
    """Makes the agent; TensorFlow is imported only in `make_agent`."""

    config_class = DuelingDqnConfig

    def make_agent(self, config: Any, specs: Any, train_step: Any) -> Any:
        """Makes the agent for all encoded observations and for one integer action from 0 up."""
        from tf_agents.agents.dqn.dqn_agent import DdqnAgent

        from actorlearner.agents.encoder import encoded

        check_observation("dueling DQN", specs)
        check_discrete_action("dueling DQN", specs)
        agent = DdqnAgent(
            specs.time_step,
            specs.action,
            q_network=encoded(specs, lambda spec: _dueling_network(spec, specs, config.layers)),
            optimizer=adam(config.learning_rate, config, train_step),
            epsilon_greedy=config.epsilon,
            **shared_arguments(config, train_step),
        )
        create_moments(agent._optimizer, agent._q_network.trainable_variables)
        return agent


def _dueling_network(observation: Any, specs: Any, layers: list[int]) -> Any:
    """Returns a network from the observation to Q: the state's value plus the advantage of each action."""
    import tensorflow as tf
    from tf_agents.networks.sequential import Sequential

    def value_and_advantages(features: tf.Tensor) -> tf.Tensor:
        advantages = features[:, 1:]
        return features[:, :1] + advantages - tf.reduce_mean(advantages, axis=1, keepdims=True)

    actions = specs.action.maximum + 1
    hidden = [tf.keras.layers.Dense(units, activation="relu") for units in layers]
    outputs = [tf.keras.layers.Dense(1 + actions), tf.keras.layers.Lambda(value_and_advantages)]
    return Sequential(hidden + outputs, input_spec=observation)
