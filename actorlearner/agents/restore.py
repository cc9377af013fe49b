"""Restores an agent for acting from a learner's checkpoint."""

from pathlib import Path

import tensorflow as tf

from actorlearner.agents.make import AgentParts
from actorlearner.records.plain_path import plain_path
from actorlearner.records.seal import seal_path, unseal


def restore_agent(path: Path, parts: AgentParts) -> None:
    """Restores an agent for acting, from one checkpoint.

    Args:
      path: of the checkpoint, without the endings of its files.
      parts: the agent; what is not made yet of its optimisers stays away.

    Raises:
      BrokenError: the checkpoint is not whole.
      AssertionError: it is that of another agent.
    """
    unseal(seal_path(path.parent, path.name))
    checkpoint = tf.train.Checkpoint(agent=parts.agent, train_step=parts.train_step)
    status = checkpoint.read(plain_path(path)).expect_partial()  # Silently, also where the check fails.
    status.assert_existing_objects_matched()
