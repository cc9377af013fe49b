"""Makes the configured agent, the same way in every role."""

from typing import NamedTuple

import tensorflow as tf
from tf_agents.agents import tf_agent
from tf_agents.train.utils import train_utils

from actorlearner.agents.registry import find_builder
from actorlearner.config.schema import Config
from actorlearner.environments.specs import EnvironmentSpecs


class AgentParts(NamedTuple):
    """An agent with what belongs to it.

    Attributes:
      agent: the initialised agent.
      train_step: its scalar int64 counter of train steps.
      policy_variables: the variables that its collect policy and its greedy policy act with, in an
        order that is the same in every process.
    """

    agent: tf_agent.TFAgent
    train_step: tf.Variable
    policy_variables: list[tf.Variable]


def make_agent(config: Config, specs: EnvironmentSpecs) -> AgentParts:
    """Makes and initialises the agent; the learner calls it under its strategy's scope.

    Raises:
      ConfigurationError: the algorithm cannot act in an environment with these specs.
    """
    train_step = train_utils.create_train_step()
    agent = find_builder(config.agent.name).make_agent(config.agent, specs, train_step)
    agent.initialize()
    return AgentParts(agent, train_step, list(agent.collect_policy.variables()))
