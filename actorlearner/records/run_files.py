"""Finds the files of a run, in one run directory or in one per role."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from actorlearner.records.events import read_events
from actorlearner.records.run_directory import RunDirectory


class RunFiles:
    """The files of a run whose roles share a run directory or have one each."""

    def __init__(self, directories: Sequence[RunDirectory]) -> None:
        """Takes at least one directory, all of the same run."""
        self.directories = tuple(directories)

    def metrics(self, name: str) -> Path:
        """Returns the metrics file of that name (see RunDirectory), which need not exist."""
        paths = [directory.metrics(name) for directory in self.directories]
        return next((path for path in paths if path.exists()), paths[0])

    def collect_metrics(self) -> list[Path]:
        """Returns the metrics files of all collect actors, by index."""
        folders = [directory.metrics("").parent for directory in self.directories]
        files = [path for folder in folders for path in folder.glob("collect-*.jsonl")]
        return sorted(files, key=lambda path: (len(path.name), path.name))  # 10 comes after 9.

    def heartbeats(self) -> list[Path]:
        """Returns the heartbeat files of all roles, by name."""
        files = [path for directory in self.directories for path in directory.heartbeats.glob("*.json")]
        return sorted(files, key=lambda path: path.name)

    def events(self) -> list[dict[str, Any]]:
        """Returns the events of the run, oldest first."""
        events = [event for directory in self.directories for event in read_events(directory.events)]
        return sorted(events, key=lambda event: float(event["time"]))

    @property
    def of_eval_actor(self) -> RunDirectory:
        """The directory that contains the best policy."""
        holders = [each for each in self.directories if each.best_policy.exists()]
        return (holders or self.directories)[0]
