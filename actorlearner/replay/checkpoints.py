"""Checkpoints of the replay server: all its tables, the experience and the variables.

Reverb keeps one checkpoint and removes everything else beside it, so it writes into a directory of its own;
what it has finished is sealed and moved out of there, and the newest two are kept.
"""

import datetime
import logging
import os
import shutil
from pathlib import Path
from typing import Any

import reverb

from actorlearner.records.disk import Outage
from actorlearner.records.notify import warn
from actorlearner.records.plain_path import plain_path
from actorlearner.records.seal import BrokenError, newest_complete, seal, seal_path, sealed, sealed_facts
from actorlearner.replay.rate_limit import RateLimit
from actorlearner.replay.reverb_calls import UNREACHABLE
from actorlearner.replay.status import ReplayMonitor

_log = logging.getLogger(__name__)

KEPT = 2
"""Checkpoints that stay, beside the one that is being written."""

_WORKING = "working"
_RESTORED = "0"
"""What a checkpoint is called while it is restored.

Reverb removes all but the last by name when it writes one. It names them by the local time, which may be an
earlier one than where the restored checkpoint was written.
"""
_STATUS_TIMEOUT_S = 30
_NOT_SAVED = (OSError, RuntimeError, IndexError, ValueError)
"""What a failed write ends in: ours, and Reverb's, for which a full disk is an IndexError."""


class ReplayCheckpoints:
    """Saves a replay server, and restores the newest checkpoint that is whole.

    Attributes:
      directory: where the checkpoints are.
    """

    def __init__(self, directory: Path, limit: RateLimit, max_items: int) -> None:
        """Neither reads nor writes yet.

        Args:
          directory: where the checkpoints are; nothing else should be there.
          limit: the rate limiter of the experience table, for it is saved with the table.
          max_items: the capacity of the experience table in items, which is saved, too.
        """
        self.directory = directory
        self._working = directory / _WORKING
        self._outage = Outage("checkpoints of replay", directory)
        self._settings = {
            "max_items": max_items,
            "min_items": limit.min_size,
            "samples_per_insert": limit.samples_per_insert,
            "error_buffer": limit.error_buffer,
        }

    def restoring_checkpointer(self) -> "reverb.platform.checkpointers_lib.CheckpointerBase":
        """Returns what a `reverb.Server` saves with and restores the newest whole checkpoint from, if any."""
        self.directory.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self._working, ignore_errors=True)
        self._working.mkdir()
        if (whole := newest_checkpoint(self.directory)) is not None:
            checkpoint, facts = whole
            shutil.copytree(checkpoint, self._working / _RESTORED, copy_function=_link)
            _log.info("restoring %d transitions from the checkpoint %s", facts["size"], checkpoint.name)
            self._compare(facts["settings"])
        return reverb.platform.checkpointers_lib.DefaultCheckpointer(path=plain_path(self._working))

    def _compare(self, saved: dict[str, float | None]) -> None:
        for key, value in self._settings.items():
            if saved.get(key) != value:
                warn(
                    f"the restored table keeps its {key.replace('_', ' ')} of {saved.get(key)}; this "
                    f"configuration's {value} has no effect"
                )

    def save(self, client: reverb.Client, monitor: ReplayMonitor) -> bool:
        """Saves the server; all its calls wait meanwhile.

        Returns:
          Whether that worked. A disk that is full or fails is logged, as is a server that does not answer,
          and what was saved before is kept.
        """
        try:
            # First: a checkpoint that is written must not be lost for want of an answer.
            status = monitor.status(_STATUS_TIMEOUT_S)
        except UNREACHABLE:
            _log.warning("nothing is saved now: this server did not answer within %d s", _STATUS_TIMEOUT_S)
            return False
        try:
            written = Path(client.checkpoint())
            target = self.directory / written.name
            written.rename(target)
            facts = {"size": status.size, "inserts": status.inserts, "samples": status.samples}
            files = [file for file in target.iterdir() if file.is_file()]
            seal(seal_path(self.directory, target.name), files, facts | {"settings": self._settings})
        except _NOT_SAVED as error:
            self._outage.failed(error)
            self._remove_unsealed()
            return False
        self._outage.recovered()
        _log.info("saved %d transitions as the checkpoint %s", status.size, target.name)
        for name in sealed(self.directory)[:-KEPT]:
            seal_path(self.directory, name).unlink()
        self._remove_unsealed()
        return True

    def _remove_unsealed(self) -> None:
        """Removes what has no seal: older checkpoints, and any that could not be written."""
        keep = {_WORKING, *sealed(self.directory)}
        for entry in self.directory.iterdir():
            if entry.is_dir() and entry.name not in keep:
                shutil.rmtree(entry, ignore_errors=True)
        for entry in self._working.iterdir():
            shutil.rmtree(entry, ignore_errors=True)


def newest_checkpoint(directory: Path) -> tuple[Path, dict[str, Any]] | None:
    """Finds the newest checkpoint that is whole; logs which newer ones are not.

    Returns:
      It and the facts of its seal; None if there is none.
    """
    whole = newest_complete(directory, _leave_out)
    return (directory / whole[0], whole[1]) if whole else None


def saved_transitions(directory: Path) -> int | None:
    """How many transitions the newest checkpoint has, by its seal; None without any. It is not checked."""
    newest = newest_complete(directory, lambda name, error: None, sealed_facts)
    return int(newest[1]["size"]) if newest else None


def _leave_out(name: str, error: BrokenError) -> None:
    warn(f"the replay checkpoint {name} is left out: {error}")


def saved_at(checkpoint: Path) -> float:
    """When a checkpoint was begun, in Unix seconds, as its name says; everything inserted before is in it."""
    return datetime.datetime.fromisoformat(checkpoint.name).timestamp()


def _link(source: str, target: str) -> None:
    """A second name for a file instead of a copy, where the file system has such."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
