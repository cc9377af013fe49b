"""DQN and Double DQN, for one discrete action: a network estimates a value (Q) for each action.

Details that matter:
- Double DQN (`double`): the trained network chooses the next action and the target network values it. One
  network for both picks the actions that it overestimates.
- The loss (`td_loss`): Huber bounds the influence of large errors, so that rare ones, such as the ends of
  episodes, hardly count; squared follows the mean.
- Epsilon decays by train step, not by env step: actors read the train step that they pull with the weights,
  so that all explore with the same epsilon.
"""

import dataclasses
from typing import TYPE_CHECKING

from actorlearner.agents.parts import (
    EpsilonGreedyConfig,
    adam,
    check_discrete_action,
    check_observation,
    create_moments,
    epsilon_schedule,
    shared_arguments,
)
from actorlearner.config.schema import AgentConfig
from actorlearner.config.setting import setting

if TYPE_CHECKING:
    import tensorflow as tf
    from tf_agents.agents import tf_agent

    from actorlearner.environments.specs import EnvironmentSpecs


@dataclasses.dataclass(frozen=True)
class DqnConfig(EpsilonGreedyConfig):
    """The keys of DQN ("Human-level control through deep reinforcement learning", Mnih et al. 2015)."""

    name: str = setting("dqn", "The algorithm: Deep Q-Networks, for one discrete action.")
    td_loss: str = setting(
        "huber",
        "Loss of a temporal-difference error: squared, or huber (linear beyond an error of 1).",
        choices=("squared", "huber"),
    )
    double: bool = setting(
        True,
        "Double DQN (https://arxiv.org/abs/1509.06461): the trained network chooses the next action and the "
        "target network values it. False: the target network does both.",
    )
    layers: list[int] = setting([256, 256], "Units of each hidden layer of the Q network.", at_least=1)
    learning_rate: float = setting(3e-4, "Adam's learning rate.", above=0)


class DqnBuilder:
    """Makes TF-Agents' DQN or Double DQN agent."""

    config_class: type[AgentConfig] = DqnConfig

    def make_agent(
        self, config: AgentConfig, specs: "EnvironmentSpecs", train_step: "tf.Variable"
    ) -> "tf_agent.TFAgent":
        """Makes the agent for all encoded observations and for one integer action from 0 up."""
        from tf_agents.agents.dqn import dqn_agent
        from tf_agents.networks import q_network

        from actorlearner.agents.encoder import encoded

        assert isinstance(config, DqnConfig)
        check_observation("dqn", specs)
        check_discrete_action("dqn", specs)
        agent_class = dqn_agent.DdqnAgent if config.double else dqn_agent.DqnAgent
        agent = agent_class(
            specs.time_step,
            specs.action,
            q_network=encoded(
                specs.observation,
                lambda observation: q_network.QNetwork(
                    observation, specs.action, fc_layer_params=config.layers
                ),
            ),
            optimizer=adam(config.learning_rate),
            epsilon_greedy=epsilon_schedule(config, train_step),
            **shared_arguments(config, train_step),
        )
        create_moments(agent._optimizer, agent._q_network.trainable_variables)
        return agent
