"""Waits for a train step on another thread to end, so that all saved variables are of one train step.

After a stop, the training thread may still wait for data. If it gets some while the main thread saves, what
was saved mixes two train steps and has to be saved again. This happens once: the thread ends after its call.
"""

import time

import tensorflow as tf

from actorlearner.errors import RunError
from actorlearner.learning.training_graph import TrainingGraph

_SETTLE_S = 30.0
_SETTLE_INTERVAL_S = 0.01


def settled_step(train_step: tf.Variable, graph: TrainingGraph | None) -> int:
    """Returns the train step once none is in progress; blocks up to _SETTLE_S.

    Args:
      train_step: of the agent.
      graph: may take train steps on another thread; None: no train step can be in progress.

    Raises:
      RunError: a train step failed, or did not end in time.
    """
    deadline = time.monotonic() + _SETTLE_S
    while graph is not None and graph.in_train_step:
        if graph.failed:
            raise RunError("a train step failed after the stop")
        if time.monotonic() >= deadline:
            raise RunError(f"a train step did not end within {_SETTLE_S:.0f} s of the stop")
        time.sleep(_SETTLE_INTERVAL_S)
    return int(train_step.numpy())


def is_settled(step: int, train_step: tf.Variable, graph: TrainingGraph | None) -> bool:
    """Returns whether no variable has changed since `settled_step` returned `step`."""
    in_train_step = graph is not None and graph.in_train_step
    # Read last: otherwise a train step could end unnoticed between the two checks.
    return not in_train_step and int(train_step.numpy()) == step
