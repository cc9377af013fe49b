"""DQN and Double DQN, for one discrete action: a network estimates a value (Q) for each action.

Details that matter:
- Double DQN (`double`): the trained network chooses the next action and the target network values it. One
  network for both picks the actions that it overestimates.
- The loss (`td_loss`): Huber bounds the influence of large errors, so that rare ones, such as the ends of
  episodes, hardly count; squared follows the mean.
- With an LSTM (`lstm_units`), for partially observable tasks, see recurrent_dqn_agent.py.
- Epsilon decays by train step, not by env step: actors read the train step that they pull with the weights,
  so that all follow the same schedule.
"""

import dataclasses
from typing import TYPE_CHECKING

from actorlearner.agents.action_values import ActionValueBuilder, ActionValueConfig, agent_arguments
from actorlearner.agents.checks import check_discrete_action, check_observation
from actorlearner.agents.experience import Experience
from actorlearner.agents.optimizer import adam, create_moments
from actorlearner.config.problems import problem
from actorlearner.config.setting import setting
from actorlearner.errors import ConfigurationError

if TYPE_CHECKING:
    import tensorflow as tf
    from tf_agents.agents import tf_agent

    from actorlearner.agents.encoder import AgentSpecs
    from actorlearner.environments.environment import Nest
    from actorlearner.environments.specs import EnvironmentSpecs


@dataclasses.dataclass(frozen=True)
class DqnConfig(ActionValueConfig):
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
    lstm_units: int | None = setting(
        None,
        "Units of an LSTM behind the hidden layers; it is trained on sequences. Null: none.",
        at_least=1,
    )
    sequence_length: int = setting(20, "With an LSTM, env steps in a sequence.", at_least=2)
    sequence_stride: int = setting(
        10, "With an LSTM, env steps between the starts of two consecutive sequences.", at_least=1
    )
    burn_in: int = setting(
        4,
        "With an LSTM, env steps at the start of a sequence that only bring the state up to date.",
        at_least=0,
    )
    trace_decay: float = setting(
        0.0,
        "With an LSTM, lambda of the targets: 0 bootstraps after one env step, 1 only at a sequence's end.",
        at_least=0,
        at_most=1,
    )


class DqnBuilder(ActionValueBuilder[DqnConfig]):
    """Makes TF-Agents' DQN or Double DQN agent, or one with an LSTM."""

    config_class = DqnConfig

    def experience(self, config: DqnConfig) -> Experience:
        """Returns transitions, or with an LSTM sequences; drawn uniformly or by priority."""
        drawn = super().experience(config)
        if config.lstm_units is None:
            return drawn
        return dataclasses.replace(drawn, length=config.sequence_length, stride=config.sequence_stride)

    def policy_specs(self, config: DqnConfig, specs: "EnvironmentSpecs") -> "tuple[Nest, Nest]":
        """Returns the spec of the LSTM's state."""
        if config.lstm_units is None:
            return (), ()
        from actorlearner.agents.lstm import state_spec

        return (), state_spec(config.lstm_units)

    def make_agent(
        self, config: DqnConfig, specs: "AgentSpecs", train_step: "tf.Variable"
    ) -> "tf_agent.TFAgent":
        """Makes the agent for all encoded observations and for one integer action from 0 up."""
        from tf_agents.agents.dqn import dqn_agent
        from tf_agents.networks import q_network

        from actorlearner.agents.encoder import encoded

        check_observation("dqn", specs)
        check_discrete_action("dqn", specs)
        if config.lstm_units is not None:
            return _recurrent_agent(config, specs, train_step)
        agent_class = dqn_agent.DdqnAgent if config.double else dqn_agent.DqnAgent
        agent = agent_class(
            specs.time_step,
            specs.action,
            q_network=encoded(
                specs,
                lambda observation: q_network.QNetwork(
                    observation, specs.action, fc_layer_params=config.layers
                ),
            ),
            optimizer=adam(config.learning_rate, config, train_step),
            **agent_arguments(config, train_step),
        )
        create_moments(agent._optimizer, agent._q_network.trainable_variables)
        return agent


def _recurrent_agent(config: DqnConfig, specs: "AgentSpecs", train_step: "tf.Variable") -> "tf_agent.TFAgent":
    from actorlearner.agents.recurrent_dqn_agent import RecurrentDqnAgent, RecurrentQNetwork

    assert config.lstm_units is not None
    if config.burn_in >= config.sequence_length:
        less = f"less than agent.sequence_length, {config.sequence_length}"
        raise ConfigurationError([problem("agent.burn_in", f"{config.burn_in} cannot work", less)])
    agent = RecurrentDqnAgent(
        specs.time_step,
        specs.action,
        q_network=RecurrentQNetwork(specs, config.layers, config.lstm_units),
        optimizer=adam(config.learning_rate, config, train_step),
        double=config.double,
        burn_in=config.burn_in,
        trace_decay=config.trace_decay,
        **agent_arguments(config, train_step),
    )
    create_moments(agent._optimizer, agent._q_network.trainable_variables)
    return agent
