"""What a run directory holds that local mode can go on from."""

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
from actorlearner.records.metrics import read_records
from actorlearner.records.run_directory import RunDirectory
from actorlearner.records.seal import BrokenError, newest_complete, sealed_facts, unseal, write_atomically


@dataclasses.dataclass(frozen=True)
class Resumed:
    """How far the run in a directory is.

    Attributes:
      train_step: of the learner's newest whole checkpoint; 0 without one.
      transitions: in the newest whole checkpoint of replay; 0 without one.
      evaluated: the train step of the last evaluation; -1 without one.
      judged: whether the best policy, if there is one, was played on fresh seeds.
    """

    train_step: int
    transitions: int
    evaluated: int
    judged: bool = True

    def finished(self, config: Config) -> bool:
        """Whether the last train step has been taken and evaluated, and the best policy played again."""
        return self.judged and min(self.train_step, self.evaluated) >= config.learn.train_steps


def look(directory: RunDirectory, *, check: bool = True) -> Resumed:
    """Reads how far the run is.

    Args:
      directory: of the run.
      check: whether to check the newest checkpoints, which reads them whole: gigabytes, where replay is
        large. Else the seals are believed, as they can be right after they were written.
    """
    read = unseal if check else sealed_facts
    learner = newest_complete(directory.learner_checkpoints, _leave_out, read)
    replay = newest_complete(directory.replay_checkpoints, _leave_out, read)
    evaluations = read_records(directory.metrics("eval"))
    best = read_best(directory.best_policy)
    return Resumed(
        train_step=learner[1]["train_step"] if learner else 0,
        transitions=replay[1]["size"] if replay else 0,
        evaluated=evaluations[-1]["train_step"] if evaluations else -1,
        judged=best is None or best.fresh is not None,
    )


def forget_after(directory: RunDirectory, train_step: int) -> None:
    """Forgets the metrics and curves of train steps after `train_step`: they are lost and taken again."""
    _forget_records(directory.metrics("learner"), train_step)
    evaluated = _forget_records(directory.metrics("eval"), train_step)
    for summaries in directory.summaries("learner").parent.glob("*"):
        # The points of an evaluation are written before its record.
        _restart_curves(summaries, evaluated if summaries == directory.summaries("eval") else train_step)


def _forget_records(path: Path, train_step: int) -> int:
    """Removes the records of train steps after `train_step`; returns that of the last that is left, or -1."""
    records = read_records(path)
    kept = [record for record in records if record["train_step"] <= train_step]
    if len(kept) < len(records):
        write_atomically(path, "".join(json.dumps(record) + "\n" for record in kept))
    return int(kept[-1]["train_step"]) if kept else -1


def _restart_curves(summaries: Path, train_step: int) -> None:
    """Makes TensorBoard drop what its event files hold after `train_step`, by the event of a restart.

    They are written without TensorBoard's EventFileWriter, which imports TensorFlow: that takes seconds,
    and prints a dozen lines on the terminal.
    """
    now = time.time()
    version = event_pb2.Event(wall_time=now, file_version="brain.Event:2")
    restart = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
    event = event_pb2.Event(wall_time=now, step=train_step + 1, session_log=restart)
    # TensorBoard reads files in the order of their names, which begin with the time.
    name = f"events.out.tfevents.{int(now):010d}.{platform.node()}.{os.getpid()}.restart"
    with (summaries / name).open("wb") as file:
        records = RecordWriter(file)
        for each in (version, event, event):  # The first restart of all is taken for the start.
            records.write(each.SerializeToString())


def _leave_out(name: str, error: BrokenError) -> None:
    """Says nothing: the role that would restore it does."""
