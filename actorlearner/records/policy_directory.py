"""Directories of saved policies: a SavedModel and the configuration of its run."""

import ctypes
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import tensorflow as tf
from tf_agents.policies import policy_saver, tf_policy

from actorlearner.config.resolved import to_yaml
from actorlearner.config.schema import Config
from actorlearner.records.run_directory import CONFIG_IN_POLICY

_EXTRAS = CONFIG_IN_POLICY.parent
"""Folder in a SavedModel for files that are not TensorFlow's."""


class PolicyDirectory:
    """Saves a policy repeatedly; each version replaces the previous one as a whole."""

    def __init__(
        self, path: Path, policy: tf_policy.TFPolicy, train_step: tf.Variable, config: Config
    ) -> None:
        """Traces the policy, which takes seconds; writes nothing.

        Args:
          path: of the directory, which need not exist.
          policy: to save.
          train_step: scalar int64 variable, saved with the policy.
          config: saved with the policy.
        """
        self._path = path
        self._saver = policy_saver.PolicySaver(policy, batch_size=None, train_step=train_step)
        self._config = config
        self._written = False

    def prepare(self, extras: Mapping[str, str]) -> None:
        """Writes the policy to a directory beside its final one.

        The first call writes the whole SavedModel and takes seconds; later calls write only its variables.

        Args:
          extras: contents of more files in the folder _EXTRAS, by name. They are written last.

        Raises:
          OSError, tf.errors.OpError: the policy cannot be written.
        """
        restore_directory(self._path)
        self.remove_leftovers()
        fresh = fresh_path(self._path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._written and self._path.exists():
            # The graph never changes, and a saver's checkpoint has the form of a SavedModel's variables.
            shutil.copytree(self._path, fresh, ignore=shutil.ignore_patterns(_EXTRAS.name))
            self._saver.save_checkpoint(str(fresh))
        else:
            self._saver.save(str(fresh))
        (fresh / _EXTRAS).mkdir()
        for name, text in {CONFIG_IN_POLICY.name: to_yaml(self._config), **extras}.items():
            (fresh / _EXTRAS / name).write_text(text, encoding="utf-8")

    def replace(self) -> None:
        """Moves the prepared policy to its final directory.

        Raises:
          OSError: the directory cannot be moved.
        """
        replace_directory(self._path)
        self._written = True

    def remove_leftovers(self) -> None:
        """Removes incomplete and replaced policies to free space."""
        _remove_leftovers(self._path)


def fresh_path(path: Path) -> Path:
    """Returns where the next policy of `path` is prepared."""
    return path.with_name(f".{path.name}.new")


def _stale_path(path: Path) -> Path:
    """Returns where the old policy of `path` is moved if directories cannot be exchanged."""
    return path.with_name(f".{path.name}.old")


_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def replace_directory(target: Path) -> None:
    """Moves the policy at `fresh_path` to `target` and removes the one that was there, if any.

    If the file system can exchange two directories (all local ones of Linux can), `target` exists at any
    moment. Otherwise a killed process may leave the old policy beside it, see `restore_directory`.

    Raises:
      OSError: a directory cannot be moved.
    """
    fresh = fresh_path(target)
    if target.exists() and not _exchange(fresh, target):
        target.rename(_stale_path(target))
    if not target.exists():
        fresh.rename(target)
    _remove_leftovers(target)


def restore_directory(target: Path) -> None:
    """Moves the old policy back to `target` if a process was killed while it replaced it.

    Raises:
      OSError: the directory cannot be moved.
    """
    stale = _stale_path(target)
    if stale.exists() and not target.exists():
        stale.rename(target)


def _remove_leftovers(target: Path) -> None:
    """Removes the incomplete and the replaced policy beside `target`, if any."""
    for left in (fresh_path(target), _stale_path(target)):
        shutil.rmtree(left, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Exchanges two paths atomically; returns whether it succeeded."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    done: int = rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    return done == 0
