"""Warm start: a new run takes its initial weights from a checkpoint or policy of another run."""

import logging
from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf

from actorlearner.acting.policy_source import PolicySource, find_policy
from actorlearner.agents.make import AgentParts, make_agent, restore_agent
from actorlearner.config.problems import problem, show
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.errors import ConfigurationError, one_line
from actorlearner.records.plain_path import plain_path
from actorlearner.records.run_directory import RunDirectory
from actorlearner.records.seal import newest_complete

_log = logging.getLogger(__name__)


def warm_start(
    path: str, parts: AgentParts, specs: EnvironmentSpecs, strategy: tf.distribute.Strategy
) -> None:
    """Copies saved weights into an agent. Its train step is 0; its optimisers are not changed.

    Call it outside of the strategy's scope: in a group, only the chief does, and making variables there would
    wait for the other learners.

    Args:
      path: `agent.start_from`. A run directory stands for its newest checkpoint. From a checkpoint all
        weights are copied, from a saved policy only the policy's.
      parts: the agent.
      specs: the specs of its environment.
      strategy: the strategy under which the agent was made.

    Raises:
      ConfigurationError: there are no weights that fit the agent.
    """
    try:
        source = _source(path)
        if source.is_checkpoint:
            # Restores into an agent of the other run's configuration, because a checkpoint also holds
            # learning rates, which must not be copied.
            saved = make_agent(source.config, specs)
            restore_agent(source.path, saved)
            with strategy.scope():
                _assign(parts.agent.variables, saved.agent.variables)
                parts.train_step.assign(0)
        else:
            # A greedy policy may also have saved other variables, such as a critic's, after the policy's.
            variables = tf.saved_model.load(plain_path(source.path)).model_variables
            with strategy.scope():
                _assign(parts.policy_variables, variables[: len(parts.policy_variables)])
                parts.agent.initialize()  # Copies the networks into the target networks.
    except Exception as error:  # TensorFlow raises many types for a damaged file or a misfit.
        allowed = "a run directory, a saved policy or a learner's checkpoint, with the same networks"
        wrong = f"{show(path)} cannot be read: {one_line(error)}"
        raise ConfigurationError([problem("agent.start_from", wrong, allowed)]) from error
    _log.info("initial weights loaded from %s", source.path)


def _source(path: str) -> PolicySource:
    """Finds the saved weights at a path: of a run its newest checkpoint, or else its best policy."""
    run = RunDirectory(Path(path))
    if run.holds_a_run:
        newest = newest_complete(run.learner_checkpoints)
        if newest is not None:
            return find_policy(str(run.learner_checkpoints / newest[0]))
    return find_policy(path)


def _assign(own: Sequence[tf.Variable], saved: Sequence[tf.Variable]) -> None:
    if [variable.shape for variable in own] != [variable.shape for variable in saved]:
        raise ValueError("the shapes of its variables differ from this agent's")
    for variable, value in zip(own, saved, strict=True):
        variable.assign(value)
