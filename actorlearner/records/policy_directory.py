"""The directory of one policy: a SavedModel, with the configuration of its run inside."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import tensorflow as tf
from tf_agents.policies import policy_saver, tf_policy

from actorlearner.config.resolved import to_yaml
from actorlearner.config.schema import Config
from actorlearner.records.replace_directory import replace_directory, restore_directory
from actorlearner.records.run_directory import CONFIG_IN_POLICY

EXTRAS = CONFIG_IN_POLICY.parent
"""In a SavedModel's directory: where files lie that are not TensorFlow's."""


class PolicyDirectory:
    """Saves one policy, again and again, each time replacing the one before as a whole."""

    def __init__(
        self, path: Path, policy: tf_policy.TFPolicy, train_step: tf.Variable, config: Config
    ) -> None:
        """Traces the policy, which takes seconds; nothing is written yet.

        Args:
          path: of the directory, which need not be there.
          policy: the policy.
          train_step: scalar int64 variable, saved with it.
          config: of the run.
        """
        self._path = path
        self._fresh, self._stale = fresh_path(path), stale_path(path)
        self._saver = policy_saver.PolicySaver(policy, batch_size=None, train_step=train_step)
        self._config = config
        self._written = False

    def prepare(self, extras: Mapping[str, str]) -> None:
        """Writes the policy beside the place where it belongs.

        The first call writes all of the SavedModel and takes seconds; later ones write only its variables.

        Args:
          extras: texts of more files by their names, for the folder EXTRAS. They are written last.

        Raises:
          OSError, tf.errors.OpError: it cannot be written.
        """
        restore_directory(self._path, self._stale)
        self.remove_leftovers()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._written and self._path.exists():
            # The graph never changes, and a saver's checkpoint has the form of a SavedModel's variables.
            shutil.copytree(self._path, self._fresh, ignore=shutil.ignore_patterns(EXTRAS.name))
            self._saver.save_checkpoint(str(self._fresh))
        else:
            self._saver.save(str(self._fresh))
        (self._fresh / EXTRAS).mkdir()
        for name, text in {CONFIG_IN_POLICY.name: to_yaml(self._config), **extras}.items():
            (self._fresh / EXTRAS / name).write_text(text, encoding="utf-8")

    def replace(self) -> None:
        """Puts what was prepared into its place.

        Raises:
          OSError: that cannot be done.
        """
        replace_directory(self._fresh, self._path, self._stale)
        self._written = True

    def remove_leftovers(self) -> None:
        """Removes what was not written whole, or was replaced; its room may be needed."""
        for left in (self._fresh, self._stale):
            shutil.rmtree(left, ignore_errors=True)


def fresh_path(path: Path) -> Path:
    """Where the policy is prepared that is to replace the one at `path`."""
    return path.with_name(f".{path.name}.new")


def stale_path(path: Path) -> Path:
    """Where the policy at `path` goes while it is replaced, if two directories cannot be exchanged."""
    return path.with_name(f".{path.name}.old")
