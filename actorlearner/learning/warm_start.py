"""The first weights of a new run, from what another run has saved."""

import logging

import tensorflow as tf

from actorlearner.acting.policy_source import find_policy
from actorlearner.agents.make import AgentParts, restore_agent
from actorlearner.config.problems import problem, show
from actorlearner.errors import ConfigurationError, one_line
from actorlearner.records.plain_path import plain_path

_log = logging.getLogger(__name__)


def warm_start(path: str, parts: AgentParts) -> None:
    """Sets the weights of an agent to those that were saved; the train step stays 0.

    Args:
      path: `agent.start_from`; a checkpoint has all weights, and a saved policy those of the policy.
      parts: the agent.

    Raises:
      ConfigurationError: there are no weights that fit the agent.
    """
    try:
        source = find_policy(path)
        if source.is_checkpoint:
            restore_agent(source.path, parts)
            parts.train_step.assign(0)
        else:
            _assign(parts, tf.saved_model.load(plain_path(source.path)).model_variables)
            parts.agent.initialize()  # Copies the networks into the target networks.
    except Exception as error:  # TensorFlow raises many types for a damaged file or a misfit.
        allowed = "a run directory, a saved policy or a learner's checkpoint, with the same networks"
        wrong = f"{show(path)} cannot be read: {one_line(error)}"
        raise ConfigurationError([problem("agent.start_from", wrong, "", allowed)]) from error
    _log.info("the first weights are those of %s", source.path)


def _assign(parts: AgentParts, saved: list[tf.Variable]) -> None:
    # A greedy policy of an actor and a critic may save more than the actor; each has the actor's first.
    own = parts.policy_variables
    if [v.shape for v in own] != [v.shape for v in saved[: len(own)]]:
        raise ValueError("the shapes of its variables differ from this agent's")
    for variable, value in zip(own, saved, strict=False):
        variable.assign(value)
