"""Makes the configured agent, the same way in every role, and restores one for acting."""

import dataclasses
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf
from tf_agents.agents import tf_agent
from tf_agents.train.utils import train_utils

from actorlearner.agents.checks import check_mask
from actorlearner.agents.encoder import AgentSpecs
from actorlearner.agents.normalizer import ObservationNormalizer
from actorlearner.agents.registry import find_builder
from actorlearner.config.own_code import load_own
from actorlearner.config.schema import Config
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.records.plain_path import plain_path
from actorlearner.records.seal import seal_path, unseal

_NETWORKS = "module:callable that takes the specs of an observation and returns a Keras layer"


class AgentParts(NamedTuple):
    """An agent and its variables.

    Attributes:
      agent: the initialised agent.
      train_step: its scalar int64 counter of train steps.
      policy_variables: the variables of its collect policy and its greedy policy, in the same order in every
        process.
      normalizer: of observations; None if they are not normalised.
    """

    agent: tf_agent.TFAgent
    train_step: tf.Variable
    policy_variables: list[tf.Variable]
    normalizer: ObservationNormalizer | None = None


def make_agent(config: Config, specs: EnvironmentSpecs, actor: tuple[int, int] | None = None) -> AgentParts:
    """Makes and initialises the agent; the learner calls it under its strategy's scope.

    Args:
      config: the experiment.
      specs: of the environment.
      actor: the index of the collect actor that acts with the agent, and the number of configured collect
        actors. The index is taken modulo the number, because more actors may run than are configured. None
        for other roles.

    Raises:
      ConfigurationError: the algorithm cannot act in an environment with these specs.
    """
    train_step = train_utils.create_train_step()
    check_mask(config.agent, specs)
    builder = find_builder(config.agent.name)
    agent_config = config.agent
    if actor is not None:
        index, actors = actor
        agent_config = builder.config_of_actor(agent_config, index % actors, actors)
    if agent_config.learning_rate_decay_steps is None:
        agent_config = dataclasses.replace(agent_config, learning_rate_decay_steps=config.learn.train_steps)
    normalizer = ObservationNormalizer(specs.observation) if agent_config.observation_normalizer else None
    networks = agent_config.networks
    own_encoder = None if networks is None else load_own(networks, "agent.networks", _NETWORKS)
    agent_specs = AgentSpecs(specs.observation, specs.action, specs.time_step, normalizer, own_encoder)
    agent = builder.make_agent(agent_config, agent_specs, train_step)
    agent.initialize()
    return AgentParts(agent, train_step, list(agent.collect_policy.variables()), normalizer)


def restore_agent(path: Path, parts: AgentParts) -> None:
    """Restores an agent for acting from a checkpoint of a learner.

    Args:
      path: the checkpoint, without the suffixes of its files.
      parts: the agent; optimiser variables that do not exist yet are skipped.

    Raises:
      BrokenError: the checkpoint is incomplete.
      AssertionError, ValueError: it is the checkpoint of another agent.
    """
    unseal(seal_path(path.parent, path.name))
    checkpoint = tf.train.Checkpoint(agent=parts.agent, train_step=parts.train_step)
    status = checkpoint.read(plain_path(path)).expect_partial()  # Without warnings about skipped variables.
    status.assert_existing_objects_matched()
