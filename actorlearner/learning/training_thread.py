"""Runs training in a thread of its own, so that the main thread, which gets signals, never blocks."""

import logging
import threading
import time
from collections.abc import Callable

from actorlearner.learning.measured_learner import MeasuredLearner
from actorlearner.learning.outputs import Outputs
from actorlearner.learning.training_loop import TrainingLoop
from actorlearner.process.heartbeat import beat
from actorlearner.process.stop import Stop

_log = logging.getLogger(__name__)

_STARVED_AFTER_S = 3.0
"""Seconds a train step may wait for its batch before this is reported; after a stop it is then abandoned."""


def train_on_a_thread(
    loop: TrainingLoop, learner: MeasuredLearner, outputs: Outputs, stop: Stop, data: str
) -> Callable[[], bool]:
    """Runs the loop so that this thread, which gets the signals, never blocks inside TensorFlow.

    A graph call that waits for data cannot be interrupted. If a stop is requested and no data arrives, the
    thread is abandoned while it waits: between two train steps, where the variables are consistent.

    Args:
      loop: the training loop.
      learner: its learner.
      outputs: its outputs.
      stop: requests the end of training.
      data: what a train step waits for, for messages.

    Returns:
      A function that returns whether no train step is in progress: an abandoned thread may still get its
      data. It raises the error that ended the thread.

    Raises:
      Exception: what the loop raises.
    """
    failure: list[BaseException] = []

    def body() -> None:
        try:
            loop.run()
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=body, name="training", daemon=True)
    thread.start()
    starvation = _Starvation(learner)

    def settled() -> bool:
        ended = not thread.is_alive()
        if failure:
            raise failure[0]
        return ended or learner.waiting_for_data or outputs.saving_first

    while thread.is_alive():
        thread.join(timeout=0.1)
        if starvation.lasts():
            if stop.requested:
                _log.info("training waits for %s, and is left there", data)
                break
            beat(f"waiting for {data}")
        if stop.requested and outputs.saving_first:
            _log.info("the policies are being saved for the first time, and left as they are")
            break
    if failure:
        raise failure[0]
    return settled


class _Starvation:
    """Detects that one train step has been waiting for its batch for longer than _STARVED_AFTER_S."""

    def __init__(self, learner: MeasuredLearner) -> None:
        self._learner = learner
        self._train_step = -1
        self._since = 0.0

    def lasts(self) -> bool:
        """Returns whether it has; call it several times a second."""
        train_step = int(self._learner.train_step_numpy)
        if not self._learner.waiting_for_data or train_step != self._train_step:
            self._train_step = train_step
            self._since = time.monotonic()
        return time.monotonic() - self._since > _STARVED_AFTER_S
