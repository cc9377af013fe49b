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
    TemporalDifferenceConfig,
    adam,
    check_discrete_action,
    check_vector_observation,
    create_moments,
    shared_arguments,
)
from actorlearner.config.schema import AgentConfig
from actorlearner.config.setting import setting

if TYPE_CHECKING:
    import tensorflow as tf
    from tf_agents.agents import tf_agent

    from actorlearner.environments.specs import EnvironmentSpecs


@dataclasses.dataclass(frozen=True)
class DqnConfig(TemporalDifferenceConfig):
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
    epsilon_start: float = setting(
        1.0, "Probability of a random action at train step 0.", at_least=0, at_most=1
    )
    epsilon_end: float = setting(
        0.05, "Probability of a random action after the decay.", at_least=0, at_most=1
    )
    epsilon_decay_steps: int = setting(
        10_000, "Train steps in which that probability goes linearly from start to end.", at_least=1
    )


class DqnBuilder:
    """Makes TF-Agents' DQN or Double DQN agent."""

    config_class: type[AgentConfig] = DqnConfig

    def make_agent(
        self, config: AgentConfig, specs: "EnvironmentSpecs", train_step: "tf.Variable"
    ) -> "tf_agent.TFAgent":
        """Makes the agent for observations of one float vector and one integer action from 0 up."""
        import tensorflow as tf
        from tf_agents.agents.dqn import dqn_agent
        from tf_agents.networks import q_network

        assert isinstance(config, DqnConfig)
        check_vector_observation("dqn", specs)
        check_discrete_action("dqn", specs)
        epsilon = tf.keras.optimizers.schedules.PolynomialDecay(
            config.epsilon_start, config.epsilon_decay_steps, config.epsilon_end
        )
        agent_class = dqn_agent.DdqnAgent if config.double else dqn_agent.DqnAgent
        agent = agent_class(
            specs.time_step,
            specs.action,
            q_network=q_network.QNetwork(specs.observation, specs.action, fc_layer_params=config.layers),
            optimizer=adam(config.learning_rate),
            epsilon_greedy=lambda: epsilon(train_step),  # Reads the variable at every call, also in a graph.
            **shared_arguments(config, train_step),
        )
        create_moments(agent._optimizer, agent._q_network.trainable_variables)
        return agent
