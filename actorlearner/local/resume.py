"""Reads how far a run is, and prepares its directory for resuming."""

import dataclasses
import json
import os
import platform
import time
from pathlib import Path

from tensorboard.compat.proto import event_pb2
from tensorboard.summary.writer.record_writer import RecordWriter

from actorlearner.acting.best_record import read_best
from actorlearner.config.schema import Config
from actorlearner.inspect.status.run_status import is_finished
from actorlearner.records.disk import write_atomically
from actorlearner.records.metrics import read_records
from actorlearner.records.run_directory import RunDirectory
from actorlearner.records.seal import newest_complete, sealed_facts, unseal


@dataclasses.dataclass(frozen=True)
class SavedState:
    """The saved state of the run in a directory.

    Attributes:
      train_step: the train step of the learner's newest complete checkpoint; 0 without one.
      transitions: the number of transitions in the newest complete checkpoint of replay; 0 without one.
      evaluated: the train step of the last evaluation; -1 without one.
      best_is_reevaluated: whether the best policy, if there is one, was evaluated again on fresh seeds.
    """

    train_step: int
    transitions: int
    evaluated: int
    best_is_reevaluated: bool = True

    def finished(self, config: Config) -> bool:
        """Whether the last train step is saved and evaluated, and the best policy evaluated again."""
        reevaluated = config.evaluate.interval is None or self.best_is_reevaluated
        return reevaluated and is_finished(config, self.train_step, self.evaluated)


def read_state(directory: RunDirectory, *, check: bool = True) -> SavedState:
    """Reads the saved state of a run.

    `check` verifies the newest checkpoints by reading them completely: gigabytes, if replay is large.
    """
    read = unseal if check else sealed_facts
    learner, replay = (
        # No log of damaged checkpoints here: the role that restores logs them.
        newest_complete(checkpoints, read=read)
        for checkpoints in (directory.learner_checkpoints, directory.replay_checkpoints)
    )
    evaluations = read_records(directory.metrics("eval"))
    best = read_best(directory.best_policy)
    return SavedState(
        train_step=learner[1]["train_step"] if learner else 0,
        transitions=replay[1]["size"] if replay else 0,
        evaluated=evaluations[-1]["train_step"] if evaluations else -1,
        best_is_reevaluated=best is None or best.fresh is not None,
    )


def roll_back(directory: RunDirectory, train_step: int) -> None:
    """Removes the metrics and curves of train steps after `train_step`, which the learner takes again."""
    _remove_records(directory.metrics("learner"), train_step)
    evaluated = _remove_records(directory.metrics("eval"), train_step)
    for summaries in directory.summaries("learner").parent.glob("*"):
        # Curves of an evaluation without a record go too: the curves are written first.
        _restart_curves(summaries, evaluated if summaries == directory.summaries("eval") else train_step)


def _remove_records(path: Path, train_step: int) -> int:
    """Removes the records after `train_step`; returns the train step of the last record left, or -1."""
    records = read_records(path)
    kept = [record for record in records if record["train_step"] <= train_step]
    if len(kept) < len(records):
        write_atomically(path, "".join(json.dumps(record) + "\n" for record in kept))
    return int(kept[-1]["train_step"]) if kept else -1


def _restart_curves(summaries: Path, train_step: int) -> None:
    """Writes a restart event, at which TensorBoard drops the points after `train_step`.

    TensorBoard's EventFileWriter would import TensorFlow: that takes seconds, and prints a dozen lines.
    """
    now = time.time()
    version = event_pb2.Event(wall_time=now, file_version="brain.Event:2")
    restart = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
    event = event_pb2.Event(wall_time=now, step=train_step + 1, session_log=restart)
    # TensorBoard reads files in the order of their names, which start with the time.
    name = f"events.out.tfevents.{int(now):010d}.{platform.node()}.{os.getpid()}.restart"
    with (summaries / name).open("wb") as file:
        records = RecordWriter(file)
        for each in (version, event, event):  # TensorBoard takes the first for the run's start.
            records.write(each.SerializeToString())
