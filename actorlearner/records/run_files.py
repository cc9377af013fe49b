"""What the roles of one run have written, wherever each of them wrote it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from actorlearner.records.events import read_events
from actorlearner.records.run_directory import RunDirectory


class RunFiles:
    """The files of a run: in its run directory, or in those of its roles where each has one of its own.

    Attributes:
      directories: the given ones.
    """

    def __init__(self, directories: Sequence[RunDirectory]) -> None:
        """Takes one directory or more, all of one run."""
        self.directories = tuple(directories)

    def metrics(self, name: str) -> Path:
        """The metrics file of that name, see RunDirectory; it need not be there yet."""
        paths = [directory.metrics(name) for directory in self.directories]
        return next((path for path in paths if path.exists()), paths[0])

    def collect_metrics(self) -> list[Path]:
        """The metrics files of all collect actors, in the order of their indices."""
        folders = [directory.metrics("").parent for directory in self.directories]
        files = [path for folder in folders for path in folder.glob("collect-*.jsonl")]
        return sorted(files, key=lambda path: (len(path.name), path.name))  # 10 comes after 9.

    def heartbeats(self) -> list[Path]:
        """The signs of life of all roles, in the order of their names."""
        files = [path for directory in self.directories for path in directory.heartbeats.glob("*.json")]
        return sorted(files, key=lambda path: path.name)

    def events(self) -> list[dict[str, Any]]:
        """What befell the run, oldest first; see `actorlearner.records.events`."""
        events = [event for directory in self.directories for event in read_events(directory.events)]
        return sorted(events, key=lambda event: float(event["time"]))

    @property
    def of_eval_actor(self) -> RunDirectory:
        """The directory that has the best policy."""
        holders = [each for each in self.directories if each.best_policy.exists()]
        return (holders or self.directories)[0]
