"""The learner's checkpoints: agent, optimisers and train step."""

import logging
from pathlib import Path

import tensorflow as tf

from actorlearner.agents.make import AgentParts

_log = logging.getLogger(__name__)

_KEPT = 3


class LearnerCheckpoint:
    """Saves what training goes on from, and restores the newest at construction."""

    def __init__(self, directory: Path, parts: AgentParts) -> None:
        """Restores the newest checkpoint, if there is one; optimiser slots follow once they exist."""
        self._train_step = parts.train_step
        self._checkpoint = tf.train.Checkpoint(agent=parts.agent, train_step=parts.train_step)
        self._manager = tf.train.CheckpointManager(self._checkpoint, str(directory), max_to_keep=_KEPT)
        newest = self._manager.latest_checkpoint
        if newest:
            self._checkpoint.restore(newest)
            _log.info("restored train step %d from %s", int(self._train_step), newest)
        self._saved = int(self._train_step) if newest else -1

    def save(self) -> None:
        """Writes a checkpoint of this train step, unless it was just written."""
        step = int(self._train_step)
        if step != self._saved:
            self._manager.save(checkpoint_number=step)
            self._saved = step
