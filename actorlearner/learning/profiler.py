"""A profile of some train steps, for TensorBoard's profile plugin."""

import logging
from pathlib import Path

import tensorflow as tf

from actorlearner.config.checks import profiled_steps
from actorlearner.errors import one_line
from actorlearner.records.notify import warn

_log = logging.getLogger(__name__)


class Profiler:
    """Profiles this process from one train step to another.

    TensorFlow's profile shows the time of each operation on every device and thread, and where a GPU waits.
    """

    def __init__(self, profile: str | None, directory: Path) -> None:
        """Does not profile yet.

        Args:
          profile: `learn.profile`.
          directory: TensorBoard's directory; the profile goes into plugins/profile/ there.
        """
        self._steps = profiled_steps(profile)
        self._directory = directory
        self._running = False

    def update(self, train_step: int, next_call: int = 1) -> None:
        """Starts or ends the profile if it is due; blocks for seconds while it is written.

        If it cannot be started or written, this warns, and training goes on without it.

        Args:
          train_step: the train steps taken.
          next_call: the train steps that the next call of the graph takes at least. If the profile begins
            within them, it begins before them, and it ends after the call in which it should end.
        """
        if self._steps is None:
            return
        start, stop = self._steps
        if not self._running and start < train_step + next_call and train_step < stop:
            try:
                tf.profiler.experimental.start(str(self._directory))
            except (OSError, tf.errors.OpError) as error:
                warn(f"there will be no profile (learn.profile): {one_line(error)}")
                self._steps = None
            else:
                self._running = True
        elif train_step >= stop:
            self.end()

    def end(self) -> None:
        """Ends a running profile; blocks as `update` does."""
        if not self._running:
            return
        self._running = False
        try:
            tf.profiler.experimental.stop()
        except (OSError, tf.errors.OpError) as error:
            warn(f"the profile was not written: {one_line(error)}")
        else:
            _log.info("the profile is in %s", self._directory)
