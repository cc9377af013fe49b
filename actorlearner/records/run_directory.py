"""The run directory: configuration, manifest, checkpoints, policies, metrics and logs of a run."""

import datetime
import errno
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from actorlearner.config.document import read_document
from actorlearner.config.load import load_with_sources
from actorlearner.config.resolved import canonical, differences, fingerprint, to_yaml
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError, RunError, one_line
from actorlearner.records.disk import write_atomically
from actorlearner.records.manifest import new_manifest, new_run_id
from actorlearner.records.run_lock import take_lock

NEW_RUNS = "runs"
"""Directory in which new run directories are created."""

CONFIG_IN_POLICY = Path("assets.extra") / "config.yaml"
"""The configuration in a SavedModel's directory. TensorFlow leaves `assets.extra` to its users."""

_OTHER_SERVERS = "other_servers"  # In the manifest: the run ids of all replay servers but the first.
_LONGEST_EXPERIMENT = 50


class RunDirectory:
    """A run directory: its paths, its manifest, and the configuration that it belongs to."""

    def __init__(self, path: Path) -> None:
        """Does not access the directory."""
        self.path = path.absolute()
        self.config = self.path / "config.yaml"
        self.manifest = self.path / "manifest.json"
        self.events = self.path / "events.jsonl"
        self.lock = self.path / "lock"
        self.learner_checkpoints = self.path / "checkpoints" / "learner"
        self.replay_checkpoints = self.path / "checkpoints" / "replay"
        self.policies = self.path / "policies"
        self.best_policy = self.policies / "best"
        self.videos = self.path / "videos"
        self.heartbeats = self.path / "health"
        self.is_new = False
        """True if `prepare` began a new run, False if it resumed one."""
        self._made: list[Path] = []

    def metrics(self, name: str) -> Path:
        """Returns the metrics file of `learner`, `collect-<i>`, `eval`, `best` or `replay`."""
        return self.path / "metrics" / f"{name}.jsonl"

    def summaries(self, role: str) -> Path:
        """Returns the TensorBoard directory of a role."""
        return self.path / "summaries" / role

    def log(self, role: str) -> Path:
        """Returns the log file of a role."""
        return self.path / "logs" / f"{role}.log"

    def heartbeat(self, role: str) -> Path:
        """Returns the heartbeat file of a role."""
        return self.heartbeats / f"{role}.json"

    @property
    def holds_a_run(self) -> bool:
        """Whether the directory contains a run."""
        return self.config.exists()

    @property
    def run_id(self) -> str | None:
        """The id of the run; None until a replay server has reported it."""
        run_id: str | None = self.read_manifest()["run_id"]
        return run_id

    def server_run_ids(self) -> dict[int, str]:
        """Returns the run ids of the replay servers that this role has connected to.

        Keys are positions in `--replay_address`, from 0. The first server's run id is the run's.
        """
        manifest = self.read_manifest()
        others = {int(place): run_id for place, run_id in manifest.get(_OTHER_SERVERS, {}).items()}
        return others if manifest["run_id"] is None else {0: manifest["run_id"]} | others

    def remember_server(self, place: int, run_id: str) -> None:
        """Saves the run id of the replay server at a position in `--replay_address`."""
        manifest = self.read_manifest()
        if place == 0:
            manifest["run_id"] = run_id
        else:
            manifest[_OTHER_SERVERS] = manifest.get(_OTHER_SERVERS, {}) | {str(place): run_id}
        self._write_manifest(manifest)

    def own_run_id(self) -> str:
        """Returns the run id, or a new one if there is none yet: the replay server chooses it."""
        run_id = self.run_id
        if run_id is None:
            run_id = new_run_id()
            self.remember_server(0, run_id)
        return run_id

    def hold(self) -> None:
        """Locks the directory until this process ends; creates it if necessary.

        Raises:
          ConfigurationError: another process holds the lock.
          RunError: the directory cannot be written to.
        """
        try:
            self.make()
            holder = take_lock(self.lock)
        except OSError as error:
            raise self._unusable(error) from error
        if holder:
            raise ConfigurationError(
                [f"--run_dir: {self.path} is in use by {holder}; allowed: a directory in which nothing runs"]
            )

    def make(self, *, is_new: bool = False) -> None:
        """Creates the directory; raises FileExistsError if it must be new but exists."""
        made = [path for path in (self.path, *self.path.parents) if not path.exists()]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.mkdir(exist_ok=not is_new)
        self._made = self._made or made

    def _unusable(self, error: OSError) -> RunError:
        return RunError(f"cannot write to the run directory {self.path}: {error.strerror}")

    def prepare(self, config: Config, *, joins: bool = False) -> None:
        """Starts a run with this configuration, or checks that the directory contains such a run.

        The configuration of an existing run may only differ by a larger `learn.train_steps`.

        Args:
          config: the configuration.
          joins: whether a replay server reports the run id later; otherwise a new run gets a new one.

        Raises:
          ConfigurationError: the directory contains a run of another configuration.
          RunError: the directory cannot be written to.
        """
        try:
            if self.holds_a_run:
                self._resume(config)
                self._check_writable()
                return
            self.make()
            self._write_manifest(new_manifest(config, run_id=None if joins else new_run_id()))
            # Last, because `holds_a_run` checks this file.
            write_atomically(self.config, to_yaml(config))
            self.is_new = True
        except OSError as error:
            raise self._unusable(error) from error

    def _check_writable(self) -> None:
        """Raises an OSError if this user cannot write to the directory, the metrics or the logs.

        Other files in the directory do not matter, and files may disappear meanwhile.
        """
        metrics, logs = self.metrics("").parent, self.log("").parent
        files = (self.path, metrics, logs, *metrics.glob("*.jsonl"), *logs.glob("*.log"))
        for path in files:
            if path.exists() and not os.access(path, os.W_OK):
                number = errno.EROFS if os.statvfs(path).f_flag & os.ST_RDONLY else errno.EACCES
                raise OSError(number, os.strerror(number), path)

    def discard(self) -> None:
        """Removes the directory after a refused start, so that a corrected start can use the same path.

        A role may refuse the configuration when others have begun: what they have written is removed, too,
        unless there is a policy or a learner's checkpoint. Parent directories that this object created are
        removed too, if empty. A directory that existed before is left without the configuration, as by
        `withdraw`; one that contains more is left as it is.
        """
        if not self._made:
            self.withdraw()
            return
        others = (self.metrics("").parent, self.summaries("replay").parent, self.replay_checkpoints.parent)
        if self.learner_checkpoints.exists() or not self._is_bare(*others):
            return
        shutil.rmtree(self.path)
        for above in self._made[1:]:
            if any(above.iterdir()):  # Another run was started there meanwhile.
                return
            above.rmdir()

    def withdraw(self) -> None:
        """Removes the configuration that a refused start has written, so that a corrected one is not refused.

        Nothing is removed if the directory contains more than a refused start leaves, or held a run before.
        """
        if self.is_new and self._is_bare():
            self.config.unlink(missing_ok=True)
            self.manifest.unlink(missing_ok=True)

    def _is_bare(self, *others: Path) -> bool:
        """Returns whether the directory contains only what a refused start writes, and perhaps `others`."""
        ours = {self.config, self.manifest, self.events, self.lock, self.log("").parent, self.heartbeats}
        return ours.union(others).issuperset(self.path.iterdir())

    def check_same(self, config: Config) -> None:
        """Checks that the run in this directory has exactly this configuration; writes nothing.

        Raises:
          ConfigurationError: the configurations differ, if only in `learn.train_steps`.
        """
        if different := differences(canonical(config), canonical(self._read_config(config))):
            raise self._differs(different)

    def _resume(self, config: Config) -> None:
        """Checks the configuration, and saves it if it has more train steps."""
        there = self._read_config(config)
        different = differences(canonical(config), canonical(there))
        only_train_steps = all(line.startswith("learn.train_steps:") for line in different)
        if not only_train_steps or config.learn.train_steps < there.learn.train_steps:
            raise self._differs(different)
        if different:
            self._write_manifest(self.read_manifest() | {"fingerprint": fingerprint(config)})
        if there != config:  # Keys outside the fingerprint may differ, too.
            write_atomically(self.config, to_yaml(config))

    def _read_config(self, config: Config) -> Config:
        """Returns the configuration in the directory; raises a ConfigurationError for another algorithm."""
        document = read_document(str(self.config))
        agent = document.tree.get("agent")
        name = agent.get("name", "") if isinstance(agent, dict) else ""
        if isinstance(name, str) and name not in ("", config.agent.name):
            # The keys of the other algorithm are unknown here, so the file's values are compared unchecked.
            raise self._differs(differences(canonical(config), canonical(document.tree)))
        there, _ = load_with_sources(str(self.config), (), lambda name: type(config.agent))
        return there

    def _differs(self, different: Iterable[str]) -> ConfigurationError:
        start = f"--run_dir: {self.path} holds a run of another configuration"
        return ConfigurationError([f"{start}: {line}" for line in different])

    def read_manifest(self) -> dict[str, Any]:
        """Returns the manifest's contents.

        Raises:
          ConfigurationError: the manifest cannot be read.
        """
        try:
            return {**json.loads(self.manifest.read_bytes())}
        except (OSError, TypeError, ValueError) as error:
            raise ConfigurationError(
                [f"--run_dir: {self.manifest} cannot be read: {one_line(error)}; allowed: a run's manifest"]
            ) from None

    def _write_manifest(self, manifest: dict[str, Any]) -> None:
        write_atomically(self.manifest, json.dumps(manifest, indent=2) + "\n")


def new_run_directory(experiment: str) -> RunDirectory:
    """Creates a directory runs/EXPERIMENT-TIME with a name that is not in use.

    Raises:
      RunError: the directory cannot be created.
    """
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    name = f"{experiment[:_LONGEST_EXPERIMENT]}-{stamp}"
    number = 1
    while True:
        directory = RunDirectory(Path(NEW_RUNS) / (name if number == 1 else f"{name}-{number}"))
        try:
            directory.make(is_new=True)
            return directory
        except FileExistsError:
            if not directory.path.is_dir():
                raise directory._unusable(OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))) from None
        except OSError as error:
            raise directory._unusable(error) from error
        number += 1
