"""The flag that names a run directory."""

from actorlearner.cli.command import Flag, Options
from actorlearner.records.run_directory import NEW_RUNS, obstacle

RUN_DIR = Flag(
    "DIR", f"where everything is written; without it a new directory under {NEW_RUNS}/", required=False
)


def given_run_dir(options: Options, problems: list[str]) -> str | None:
    """Returns the directory that was asked for, if any; what is in the way of it goes to the problems."""
    run_dir: str | None = options.get("run_dir")
    in_the_way = obstacle(NEW_RUNS if run_dir is None else run_dir)
    if in_the_way:
        which = f"without it, {NEW_RUNS!r}" if run_dir is None else repr(run_dir)
        problems.append(
            f"--run_dir: {which} cannot be used ({in_the_way}); allowed: a directory, there or to be made"
        )
    return run_dir
