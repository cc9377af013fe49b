"""Checkpoints of the replay server: all its tables, with the experience and the policy variables.

Reverb keeps only its newest checkpoint, and removes everything else from its directory. So Reverb writes into
a working directory; each complete checkpoint is moved out of there and sealed, and the newest two are kept.
"""

import logging
import os
import shutil
from pathlib import Path
from typing import Any

import reverb

from actorlearner.config.schema import Config
from actorlearner.records.disk import Outage
from actorlearner.records.notify import warn
from actorlearner.records.plain_path import plain_path
from actorlearner.records.seal import BrokenError, newest_complete, seal, seal_path, sealed, sealed_facts
from actorlearner.replay.connection import ReplayServer
from actorlearner.replay.layout import ReplayLayout
from actorlearner.replay.rate_limit import max_items, plan_rate_limit
from actorlearner.replay.reverb_calls import UNREACHABLE

_log = logging.getLogger(__name__)

KEPT = 2
"""Complete checkpoints that are kept while another one is being written."""

_WORKING = "working"
_RESTORED = "0"
"""The name of a checkpoint in the working directory while it is restored.

Reverb names checkpoints by local time, and keeps the last by name. Under its own name, a checkpoint from
another time zone could sort after a newer one, which Reverb would then remove; "0" sorts before all of them.
"""
_STATUS_TIMEOUT_S = 30
_NOT_SAVED = (OSError, RuntimeError, IndexError, ValueError)
"""The errors of a failed write; Reverb raises IndexError on a full disk."""


class ReplayCheckpoints:
    """Saves a replay server, and restores the newest complete checkpoint.

    Attributes:
      directory: where the checkpoints are; nothing else should be there.
    """

    def __init__(self, directory: Path, config: Config, layout: ReplayLayout) -> None:
        """Neither reads nor writes yet."""
        experience, env_steps_per_item = layout.experience, layout.env_steps_per_item
        limit = plan_rate_limit(config, experience, env_steps_per_item)
        self.directory = directory
        self._working = directory / _WORKING
        self._outage = Outage("checkpoints of replay", directory)
        # Reverb saves these settings with the experience table.
        self._settings = {
            "max_items": max_items(config, experience, env_steps_per_item),
            "min_items": limit.min_size,
            "samples_per_insert": limit.samples_per_insert,
            "error_buffer": limit.error_buffer,
        }

    def restoring_checkpointer(self) -> "reverb.platform.checkpointers_lib.CheckpointerBase":
        """Returns the checkpointer for a `reverb.Server`; it restores the newest complete checkpoint."""
        self.directory.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self._working, ignore_errors=True)
        self._working.mkdir()
        if newest := newest_checkpoint(self.directory):
            checkpoint, facts = newest
            shutil.copytree(checkpoint, self._working / _RESTORED, copy_function=_link)
            _log.info("restoring %d transitions from the checkpoint %s", facts["size"], checkpoint.name)
            self._warn_of_other_settings(facts["settings"])
            self._settings = facts["settings"]
        return reverb.platform.checkpointers_lib.DefaultCheckpointer(path=plain_path(self._working))

    def _warn_of_other_settings(self, saved: dict[str, float | None]) -> None:
        for key, value in self._settings.items():
            if saved.get(key) != value:
                warn(
                    f"the restored table keeps its {key.replace('_', ' ')} of {saved.get(key)}; this "
                    f"configuration's {value} has no effect"
                )

    def save(self, server: ReplayServer) -> bool:
        """Writes a checkpoint of `server`, which answers no other call meanwhile; returns False if it fails.

        Blocks until everything is written, without a deadline. A full or failing disk is logged, and so is a
        server that does not answer; earlier checkpoints are kept.
        """
        try:
            # Read before writing: a failed read after the write would discard the written checkpoint.
            status = server.status(_STATUS_TIMEOUT_S)
        except UNREACHABLE:
            _log.warning("nothing is saved now: this server did not answer within %d s", _STATUS_TIMEOUT_S)
            return False
        try:
            written = Path(server.client.checkpoint())
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
        """Removes directories without a seal: older checkpoints, and those whose write failed."""
        keep = {_WORKING, *sealed(self.directory)}
        for entry in self.directory.iterdir():
            if entry.is_dir() and entry.name not in keep:
                shutil.rmtree(entry, ignore_errors=True)
        for entry in self._working.iterdir():
            shutil.rmtree(entry, ignore_errors=True)


def newest_checkpoint(directory: Path) -> tuple[Path, dict[str, Any]] | None:
    """Returns the newest complete checkpoint and the facts of its seal; logs newer ones that are damaged."""
    newest = newest_complete(directory, _log_damage)
    return (directory / newest[0], newest[1]) if newest else None


def saved_transitions(directory: Path) -> int | None:
    """Returns the number of transitions that the newest checkpoint's seal states; None without a checkpoint.

    Does not read the checkpoint's files, so the checkpoint may be damaged.
    """
    newest = newest_complete(directory, read=sealed_facts)
    return int(newest[1]["size"]) if newest else None


def _log_damage(name: str, error: BrokenError) -> None:
    warn(f"the replay checkpoint {name} is skipped: {error}")


def _link(source: str, target: str) -> None:
    """Links a file, or copies it where the file system has no hard links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
