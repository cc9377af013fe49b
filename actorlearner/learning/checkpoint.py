"""The learner's checkpoints: agent, optimisers and train step."""

import json
import logging
import re
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import tensorflow as tf

from actorlearner.agents.make import AgentParts
from actorlearner.errors import RunError, one_line
from actorlearner.learning.complete_restore import read_completely
from actorlearner.learning.pending_evaluations import read_pending_evaluations, write_pending_evaluations
from actorlearner.learning.settled import is_settled, settled_step
from actorlearner.learning.training_graph import TrainingGraph
from actorlearner.records.disk import Outage, write_atomically
from actorlearner.records.notify import warn
from actorlearner.records.seal import BrokenError, newest_complete, seal, seal_path, sealed
from actorlearner.variables.container import MAX_GENERATIONS, EvaluationRequest

_log = logging.getLogger(__name__)

KEPT = 3
"""Complete checkpoints that are kept while another one is being written."""

_PREFIX = "ckpt"
_UNEVALUATED = ".unevaluated.npz"
_GENERATION = "generation.json"
_GENERATION_MARGIN = 100
"""Generations skipped if the file cannot be read: more than the learners that began without saving."""

_FILES = (".data", ".index", _UNEVALUATED)


class LearnerCheckpoint:
    """Saves the state of training, and restores the newest complete checkpoint.

    Attributes:
      generation: this learner's generation, see PolicyVariables; -1 before `begin_generation`. `restore` sets
        it to the generation of the learner that saved, unless it is greater already.
    """

    def __init__(
        self,
        directory: Path,
        parts: AgentParts,
        written: Callable[[int, Path], None] = lambda train_step, path: None,
    ) -> None:
        """Neither reads nor writes yet.

        Args:
          directory: the directory of all checkpoints.
          parts: the agent and its train step.
          written: called with the train step and the path of each complete checkpoint.
        """
        self._written = written
        self._directory = directory
        self._train_step = parts.train_step
        self._checkpoint = tf.train.Checkpoint(agent=parts.agent, train_step=parts.train_step)
        self._outage = Outage("checkpoints", directory)
        self._check_restored: Callable[[], None] = lambda: None
        self._saved = -1
        self._saved_by = -1
        self.generation = -1
        # At a stop the main thread saves, while the training thread may be saving as well.
        self._lock = threading.Lock()

    def restore(self) -> bool:
        """Restores the newest complete checkpoint; returns whether there is one.

        Variables that do not exist yet, such as the slots of some optimisers, get their values when they are
        created.

        Raises:
          RunError: the checkpoint belongs to another agent. An older one is restored only in place of a
            damaged one.
        """
        complete = newest_complete(self._directory, _warn_skipped)
        if complete is None:
            return False
        name, facts = complete
        self._check_restored = read_completely(self._checkpoint, self._directory / name)
        self._saved, self._saved_by = facts["train_step"], facts["generation"]
        self.generation = max(self.generation, self._saved_by)
        _log.info("restored train step %d", self._saved)
        return True

    def check_restored(self) -> None:
        """Checks that the restored checkpoint has exactly the agent's variables; call once all exist.

        Raises:
          RunError: they differ.
        """
        self._check_restored()

    def begin_generation(self, published: int) -> None:
        """Sets `generation` for a new learner, and records it in a file.

        The new generation is greater than `published` and than every generation recorded in this directory,
        also by learners that saved no checkpoint. If the file cannot be read, _GENERATION_MARGIN generations
        are skipped, which such learners may have taken. An unreadable file is logged, and so is a disk that
        is full or fails.

        Args:
          published: the generation of the newest policy in the variable container; -1 without any.
        """
        path = self._directory / _GENERATION
        known = max(self.generation, published)
        try:
            self.generation = 1 + max(known, _recorded_generation(path))
        except (OSError, ValueError, TypeError, KeyError) as error:
            self.generation = 1 + known + _GENERATION_MARGIN
            warn(
                f"{path} cannot be read ({one_line(error)}): this learner takes generation "
                f"{self.generation}, {_GENERATION_MARGIN + 1} more than the newest known, so its policies "
                "are newer than all before"
            )
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps({"generation": self.generation}) + "\n")
        except OSError as error:
            _log.error("the generation of this learner was not recorded: %s", one_line(error))

    def pending_evaluations(self) -> list[EvaluationRequest]:
        """Reads the evaluations that were pending when the restored checkpoint was saved.

        Each keeps the generation of the learner that saved it. Its train step is not taken again, so the eval
        actor skips the evaluation if it has recorded it already.
        """
        if self._saved < 0:
            return []
        return read_pending_evaluations(self._unevaluated_path(self._saved), self._saved_by)

    def describe(self) -> str:
        """Names the newest checkpoint, for messages."""
        return f"the checkpoint of train step {self._saved}" if self._saved >= 0 else "the start"

    def save(
        self,
        pending_evaluations: Sequence[EvaluationRequest] = (),
        graph: TrainingGraph | None = None,
    ) -> bool:
        """Writes a checkpoint of this train step, unless it is written already.

        Blocks while `graph` takes a train step, see `settled_step`.

        Args:
          pending_evaluations: the policies whose evaluation is pending.
          graph: may take train steps on another thread meanwhile; None: no train step can be in progress.

        Returns:
          Whether it exists. A disk that is full or fails is logged, and earlier checkpoints are kept.

        Raises:
          RunError: a train step failed, or did not end in time; nothing was saved.
        """
        with self._lock:
            step = int(self._train_step.numpy())
            if step == self._saved:
                return True
            try:
                step = self._write(graph)
                write_pending_evaluations(self._unevaluated_path(step), pending_evaluations)
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

    def _write(self, graph: TrainingGraph | None) -> int:
        """Writes the variables; returns their train step."""
        while True:
            try:
                step = settled_step(self._train_step, graph)
            except RunError as error:
                raise RunError(f"{error}: nothing was saved since {self.describe()}") from error
            self._checkpoint.write(str(self._directory / _name(step)))
            if is_settled(step, self._train_step, graph):
                return step
            self._remove(_name(step))

    def _unevaluated_path(self, step: int) -> Path:
        return self._directory / f"{_name(step)}{_UNEVALUATED}"

    def _files(self, step: int) -> list[Path]:
        return [file for suffix in _FILES for file in self._directory.glob(f"{_name(step)}{suffix}*")]

    def _remove(self, name: str) -> None:
        """Removes all files of a checkpoint."""
        for path in self._directory.glob(f"{name}[._]*"):
            if path.is_dir():  # TensorFlow's temporary directory.
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def _remove_leftovers(self, step: int) -> None:
        """Removes unsealed checkpoints, and all sealed ones up to `step` except the newest KEPT.

        Checkpoints of later train steps are damaged, because `restore` skipped them. They stay, in addition
        to the newest KEPT.
        """
        names = sealed(self._directory)
        now = names.index(_name(step)) + 1
        kept = [*names[:now][-KEPT:], *names[now:]]
        for path in self._directory.glob(f"{_PREFIX}-*"):
            name = re.split("[._]", path.name)[0]
            if name not in kept:
                self._remove(name)


def _recorded_generation(path: Path) -> int:
    """Returns the generation of the last learner that began; -1 if there was none.

    Raises:
      OSError, ValueError, TypeError, KeyError: the file is damaged.
    """
    if not path.exists():
        return -1
    generation = json.loads(path.read_text(encoding="utf-8"))["generation"]
    if type(generation) is not int or not 0 <= generation < MAX_GENERATIONS:
        raise ValueError(f"the generation is {generation!r}")
    return generation


def _name(step: int) -> str:
    """Returns the name of a train step's checkpoint."""
    return f"{_PREFIX}-{step}"


def _warn_skipped(name: str, error: BrokenError) -> None:
    warn(f"the checkpoint {name} is skipped: {error}")
