"""The learner's checkpoints: agent, optimisers and train step."""

import json
import logging
import re
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import tensorflow as tf

from actorlearner.agents.make import AgentParts
from actorlearner.errors import RunError, one_line
from actorlearner.learning.complete_restore import read_completely
from actorlearner.learning.pending_evaluations import read_pending_evaluations, write_pending_evaluations
from actorlearner.records.disk import Outage
from actorlearner.records.notify import warn
from actorlearner.records.seal import (
    BrokenError,
    newest_complete,
    seal,
    seal_path,
    sealed,
    write_atomically,
)
from actorlearner.variables.container import MAX_GENERATIONS, EvaluationRequest

_log = logging.getLogger(__name__)

KEPT = 3
"""Checkpoints that stay, beside the one that is being written."""

_PREFIX = "ckpt"
_UNEVALUATED = ".unevaluated.npz"
_GENERATION = "generation.json"
_LEAP = 100
"""More learners than begin one after the other and save nothing."""

_SETTLE_S = 30.0
_SETTLE_INTERVAL_S = 0.01

_FILES = (".data", ".index", _UNEVALUATED)


class LearnerCheckpoint:
    """Saves what training goes on from, and restores the newest that is whole.

    Attributes:
      generation: of the learner, see PolicyVariables; -1 before it begins. A restore makes it at least that
        of the learner which saved.
    """

    def __init__(
        self,
        directory: Path,
        parts: AgentParts,
        written: Callable[[int, Path], None] = lambda train_step, path: None,
    ) -> None:
        """Neither reads nor writes yet.

        Args:
          directory: of all checkpoints.
          parts: what is saved.
          written: is called with the train step and the path of each checkpoint, once it is whole.
        """
        self._written = written
        self._directory = directory
        self._train_step = parts.train_step
        self._checkpoint = tf.train.Checkpoint(agent=parts.agent, train_step=parts.train_step)
        self._outage = Outage("checkpoints", directory)
        self._saved = -1
        self.generation = -1
        # A stop saves from the main thread while the training thread may be saving, too.
        self._lock = threading.Lock()

    def restore(self) -> None:
        """Restores the newest complete checkpoint, if any; slots of optimisers follow once they exist.

        To find out whether it is complete, it is read twice.

        Raises:
          RunError: it is not of this agent. No older one is restored instead: its files are not damaged.
        """
        whole = newest_complete(self._directory, _leave_out)
        if whole is None:
            return
        name, facts = whole
        read_completely(self._checkpoint, self._directory / name, all_made=False)
        self._saved = facts["train_step"]
        self.generation = max(self.generation, facts["generation"])
        _log.info("restored train step %d", self._saved)

    def restore_again(self) -> None:
        """Restores what `restore` did, after something else has changed it, and what was made since.

        To be called once the optimisers have their slots. The files are not checked again.

        Raises:
          RunError: the checkpoint and the agent differ in a variable.
        """
        if self._saved >= 0:
            read_completely(self._checkpoint, self._directory / _name(self._saved), all_made=True)

    def begin_generation(self, published: int) -> None:
        """Makes `generation` that of a new learner, and notes it.

        It is greater than that of the restored checkpoint, of all learners that began with this directory,
        also those that saved nothing, and than `published`. Where the note of those cannot be read, it leaves
        room for them. That, and a disk that is full or fails, is logged.

        Args:
          published: the generation of the newest policy that the variable container holds; -1 without any.
        """
        path = self._directory / _GENERATION
        known = max(self.generation, published)
        try:
            self.generation = 1 + max(known, _noted(path))
        except (OSError, ValueError, TypeError, KeyError) as error:
            self.generation = 1 + known + _LEAP
            warn(
                f"{path} cannot be read ({one_line(error)}): this learner is of generation "
                f"{self.generation}, {_LEAP + 1} more than the newest known, so that actors take its "
                "policies for newer than all before"
            )
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps({"generation": self.generation}) + "\n")
        except OSError as error:
            _log.error("the generation of this learner was not noted: %s", one_line(error))

    def pending_evaluations(self) -> list[EvaluationRequest]:
        """Reads the policies that were still to be evaluated when what was restored was saved."""
        if self._saved < 0:
            return []
        return read_pending_evaluations(self._pending_evaluations(self._saved), self.generation)

    def describe(self) -> str:
        """Which checkpoint is the newest, in words."""
        return f"the checkpoint of train step {self._saved}" if self._saved >= 0 else "the start"

    def save(
        self,
        pending_evaluations: Sequence[EvaluationRequest] = (),
        settled: Callable[[], bool] = lambda: True,
    ) -> bool:
        """Writes a checkpoint of this train step, unless it was just written.

        Blocks while a train step is in progress on another thread, up to _SETTLE_S.

        Args:
          pending_evaluations: the policies that are still to be evaluated.
          settled: returns whether no train step is in progress, see `train_on_a_thread`.

        Returns:
          Whether there is one. A disk that is full or fails is logged, and what was saved before is kept.

        Raises:
          RunError: a train step did not end in time; nothing was saved.
          Exception: what `settled` raises.
        """
        with self._lock:
            step = int(self._train_step.numpy())
            if step == self._saved:
                return True
            try:
                step = self._write(settled)
                write_pending_evaluations(self._pending_evaluations(step), pending_evaluations)
                facts = {"train_step": step, "generation": self.generation}
                seal(seal_path(self._directory, _name(step)), self._files(step), facts)
            except (OSError, tf.errors.OpError) as error:
                self._outage.failed(error)
                self._remove(_name(step))
                return False
            self._saved = step
            self._outage.recovered()
            self._remove_leftovers(step)
            self._written(step, self._directory / _name(step))
            return True

    def _write(self, settled: Callable[[], bool]) -> int:
        """Writes the variables; returns their train step.

        A training thread that a stop has left waiting for data may get it meanwhile. What was written is then
        a mixture of two train steps, and is written again; that thread ends after its call.
        """
        while True:
            self._settle(settled)
            step = int(self._train_step.numpy())
            self._checkpoint.write(str(self._directory / _name(step)))
            # In this order: a train step that ends after the first look has counted before the second.
            if settled() and int(self._train_step.numpy()) == step:
                return step
            self._remove(_name(step))

    def _settle(self, settled: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _SETTLE_S
        while not settled():
            if time.monotonic() >= deadline:
                raise RunError(
                    f"a train step did not end within {_SETTLE_S:.0f} s of the stop: nothing was saved since "
                    f"{self.describe()}"
                )
            time.sleep(_SETTLE_INTERVAL_S)

    def _pending_evaluations(self, step: int) -> Path:
        return self._directory / f"{_name(step)}{_UNEVALUATED}"

    def _files(self, step: int) -> list[Path]:
        return [file for suffix in _FILES for file in self._directory.glob(f"{_name(step)}{suffix}*")]

    def _remove(self, name: str) -> None:
        """Removes all that there is of a checkpoint; its room may be needed."""
        for left in self._directory.glob(f"{name}[._]*"):
            if left.is_dir():  # TensorFlow's, while it writes.
                shutil.rmtree(left)
            else:
                left.unlink(missing_ok=True)

    def _remove_leftovers(self, step: int) -> None:
        """Removes all but the newest KEPT up to `step`, and what a killed learner had not sealed.

        What is newer was left out at the restore, as damaged, and must not count as one of those.
        """
        names = sealed(self._directory)
        now = names.index(_name(step)) + 1
        whole = [*names[:now][-KEPT:], *names[now:]]
        for path in self._directory.glob(f"{_PREFIX}-*"):
            name = re.split("[._]", path.name)[0]
            if name not in whole:
                self._remove(name)


def _noted(path: Path) -> int:
    """The generation of the last learner that began; -1 if none has.

    Raises:
      OSError, ValueError, TypeError, KeyError: the note is not what was written.
    """
    if not path.exists():
        return -1
    generation = json.loads(path.read_text(encoding="utf-8"))["generation"]
    if type(generation) is not int or not 0 <= generation < MAX_GENERATIONS:
        raise ValueError(f"the generation is {generation!r}")
    return generation


def _name(step: int) -> str:
    """Of the checkpoint of a train step."""
    return f"{_PREFIX}-{step}"


def _leave_out(name: str, error: BrokenError) -> None:
    warn(f"the checkpoint {name} is left out: {error}")
