"""The argument of commands that look at runs: their directories."""

from pathlib import Path

from actorlearner.agents.configuration import load_config
from actorlearner.cli.command import Flag, Options
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError
from actorlearner.records.run_directory import RunDirectory

RUN_DIRS = Flag("RUN_DIR", "where a run was written, or is being written", list, several=True)


def given_runs(options: Options, problems: list[str]) -> list[tuple[RunDirectory, Config]]:
    """Returns the run directories of the argument `run_dirs`, in order, with what ran there.

    What is no run directory, or named twice, goes to the problems.
    """
    runs = []
    seen = set()
    for path in options["run_dirs"]:
        directory = RunDirectory(Path(path))
        if not directory.holds_a_run:
            reason = "there is no config.yaml in it" if directory.path.is_dir() else "it is not a directory"
            problems.append(f"RUN_DIR: {path!r} cannot be used ({reason}); allowed: the directory of a run")
            continue
        if directory.path.resolve() in seen:
            problems.append(f"RUN_DIR: {path!r} is given twice; allowed: each only once")
            continue
        seen.add(directory.path.resolve())
        try:
            runs.append((directory, load_config(str(directory.config))))
        except ConfigurationError as error:
            problems.extend(error.problems)
    return runs
