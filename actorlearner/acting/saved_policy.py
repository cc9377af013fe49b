"""Loads a saved policy, so that it can act."""

from typing import NamedTuple

import tensorflow as tf
from tf_agents.policies import greedy_policy

from actorlearner.acting.policy_function import PolicyFunction
from actorlearner.acting.policy_source import ALLOWED, PolicySource
from actorlearner.agents.make import make_agent, restore_agent
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.errors import ConfigurationError, one_line
from actorlearner.records.plain_path import plain_path
from actorlearner.records.seal import BrokenError


class LoadedPolicy(NamedTuple):
    """A policy that can act.

    Attributes:
      function: takes batches of one.
      train_step: after which these were its weights.
    """

    function: PolicyFunction
    train_step: int


def load_policy(source: PolicySource, specs: EnvironmentSpecs) -> LoadedPolicy:
    """Loads a policy; that of a checkpoint is the greedy one. It takes seconds.

    Args:
      source: where it is saved.
      specs: of the environment that it is to act in.

    Raises:
      ConfigurationError: it cannot be read, or it is not for such an environment.
    """
    try:
        return _of_checkpoint(source, specs) if source.is_checkpoint else _saved_model(source, specs)
    except ConfigurationError:
        raise
    except BrokenError as error:
        raise ConfigurationError([_wrong(source, str(error))]) from error
    except Exception as error:  # TensorFlow raises all kinds over a damaged file or a policy of another form.
        raise ConfigurationError([_wrong(source, one_line(error))]) from error


def _saved_model(source: PolicySource, specs: EnvironmentSpecs) -> LoadedPolicy:
    policy = tf.saved_model.load(plain_path(source.path))
    return LoadedPolicy(PolicyFunction(policy, specs, batch_size=1), int(policy.get_train_step()))


def _of_checkpoint(source: PolicySource, specs: EnvironmentSpecs) -> LoadedPolicy:
    parts = make_agent(source.config, specs)
    restore_agent(source.path, parts)
    policy = greedy_policy.GreedyPolicy(parts.agent.policy)
    return LoadedPolicy(PolicyFunction(policy, specs, batch_size=1), int(parts.train_step.numpy()))


def _wrong(source: PolicySource, why: str) -> str:
    return f"{ALLOWED}: {str(source.path)!r} cannot be loaded: {why}"
