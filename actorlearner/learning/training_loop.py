"""The training loop: calls the training graph on a thread of its own, until the last train step or a stop."""

import logging
import threading
import time
from collections.abc import Callable

from actorlearner.config.checks import profiled_steps
from actorlearner.config.schema import Config
from actorlearner.errors import one_line
from actorlearner.learning.group import LearnerGroup
from actorlearner.learning.outputs import Outputs
from actorlearner.learning.training_graph import TrainingGraph
from actorlearner.process.heartbeat import LONG_PATIENCE_S, beat, patience_after
from actorlearner.process.startup_timer import StartupTimer
from actorlearner.process.stop import Stop

_log = logging.getLogger(__name__)

_STARVED_AFTER_S = 3.0
"""Seconds a train step may wait for its batch. Then the heartbeat reports it; a stop abandons the thread."""


def train(
    config: Config, group: LearnerGroup, graph: TrainingGraph, outputs: Outputs, start_up: StartupTimer
) -> None:
    """Calls the training graph until the last train step or a stop.

    Args:
      config: the experiment.
      group: the group of this learner; all its learners make the same calls of the graph.
      graph: takes the train steps.
      outputs: publishes, saves and records after each call.
      start_up: reported after the first call.

    Raises:
      RunError: training has diverged.
    """
    start = train_step = int(graph.train_step.numpy())
    slowest_s: float | None = None
    while train_step < config.learn.train_steps and not group.stopped:
        train_steps = graph.train_steps_per_call or _train_steps_until_due(config, train_step)
        group.begin_call()
        began = time.monotonic()
        loss = graph.train(train_steps)
        if train_step > start:  # The first call also optimises the graph.
            slowest_s = max(slowest_s or 0.0, time.monotonic() - began)
        else:
            start_up.ended("first train steps")
            start_up.report("started")
        train_step += train_steps
        beat("train step", train_step, patience_after(slowest_s))
        outputs.after_call(train_step, loss)
    outputs.after_training()


def _train_steps_until_due(config: Config, train_step: int) -> int:
    """Returns the number of train steps of the next call, which must not run past the end of an interval."""
    learn = config.learn
    intervals = (learn.publish_interval, learn.checkpoint_interval, config.evaluate.interval)
    ends = (learn.train_steps, *(profiled_steps(learn.profile) or ()))
    return min(
        learn.train_steps_per_call,
        *(end - train_step for end in ends if end > train_step),
        *(interval - train_step % interval for interval in intervals if interval is not None),
    )


def train_on_thread(
    body: Callable[[], None],
    graph: TrainingGraph,
    stop: Stop,
    group: LearnerGroup,
    check: Callable[[], None],
) -> None:
    """Runs training on a thread, and waits for it.

    The main thread gets the signals and must not block inside TensorFlow: a call of the graph that waits for
    data cannot be interrupted. If a stop is requested and no data arrives, the thread is abandoned while it
    waits. If its data still arrives, it takes train steps, see `TrainingGraph.in_train_step`.

    Args:
      body: trains; runs on the thread.
      graph: takes the train steps.
      stop: ends training.
      group: the group of this learner; names the data, and decides whether the thread may be abandoned.
      check: raises an error that ends training, even while training waits for data.

    Raises:
      Exception: what `body` or `check` raises.
    """
    failure: list[BaseException] = []

    def run() -> None:
        try:
            body()
        except BaseException as error:
            failure.append(error)
            if stop.requested and graph.in_train_step:  # Nobody waits for a thread that was abandoned.
                _log.error("a train step failed after the stop: %s", one_line(error))

    thread = threading.Thread(target=run, name="training", daemon=True)
    thread.start()
    starvation = _Starvation(graph)
    while thread.is_alive():
        thread.join(timeout=0.1)
        if starvation.lasts():
            if stop.requested and group.may_abandon_training:
                _log.info("stopping while training waits for %s", group.data)
                break
            # The call that follows may take long, and writes no heartbeat.
            beat(f"waiting for {group.data}", patience_s=LONG_PATIENCE_S)
        check()
    if failure:
        raise failure[0]


class _Starvation:
    """Detects that one train step has been waiting for its batch for longer than _STARVED_AFTER_S."""

    def __init__(self, graph: TrainingGraph) -> None:
        self._graph = graph
        self._train_step = -1
        self._since = 0.0

    def lasts(self) -> bool:
        """Returns whether the current wait exceeds _STARVED_AFTER_S; call it several times a second."""
        train_step = int(self._graph.train_step.numpy())
        if not self._graph.waiting_for_data or train_step != self._train_step:
            self._train_step = train_step
            self._since = time.monotonic()
        return time.monotonic() - self._since > _STARVED_AFTER_S
