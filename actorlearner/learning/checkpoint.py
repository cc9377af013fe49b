"""The learner's checkpoints: agent, optimisers and train step."""

import logging
import threading
from pathlib import Path

import tensorflow as tf

from actorlearner.agents.make import AgentParts

_log = logging.getLogger(__name__)

_KEPT = 3


class LearnerCheckpoint:
    """Saves what training goes on from, and restores the newest."""

    def __init__(self, directory: Path, parts: AgentParts) -> None:
        """Neither reads nor writes yet."""
        self._train_step = parts.train_step
        self._checkpoint = tf.train.Checkpoint(agent=parts.agent, train_step=parts.train_step)
        self._manager = tf.train.CheckpointManager(self._checkpoint, str(directory), max_to_keep=_KEPT)
        self._saved = -1
        # A stop saves from the main thread while the training thread may be saving, too.
        self._lock = threading.Lock()

    def restore(self) -> None:
        """Restores the newest checkpoint, if there is one; slots of optimisers follow once they exist."""
        newest = self._manager.latest_checkpoint
        if newest:
            self._checkpoint.restore(newest)
            self._saved = int(self._train_step.numpy())
            _log.info("restored train step %d from %s", self._saved, newest)

    def describe(self) -> str:
        """Which checkpoint is the newest, in words."""
        return f"the checkpoint of train step {self._saved}" if self._saved >= 0 else "the start"

    def save(self) -> None:
        """Writes a checkpoint of this train step, unless it was just written."""
        with self._lock:
            step = int(self._train_step.numpy())
            if step != self._saved:
                self._manager.save(checkpoint_number=step)
                self._saved = step
