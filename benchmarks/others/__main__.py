"""Other libraries beside ours: install them, check their environments, train, and make tables.

.venv/bin/python -m benchmarks.others install            # needs uv
.venv/bin/python -m benchmarks.others check
.venv/bin/python -m benchmarks.others learn --out runs/others --rounds 3
.venv/bin/python -m benchmarks.others slow --out runs/others --rounds 3
.venv/bin/python -m benchmarks.others table --out runs/others
"""

import argparse
import itertools
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from benchmarks.others import contenders, equality, libraries, tables
from benchmarks.others.contenders import OURS, Contender
from benchmarks.others.job import Job
from benchmarks.others.measure import SUFFIX, beside, measure


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    options = parser().parse_args(arguments)
    commands: dict[str, Callable[[argparse.Namespace], int]] = {
        "install": _install,
        "check": _check,
        "learn": _learn,
        "slow": _slow,
        "table": _table,
    }
    return commands[options.command](options)


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.others", description="Other libraries beside ours."
    )
    commands = made.add_subparsers(dest="command", required=True)
    of = {name: commands.add_parser(name, help=line) for name, line in _HELP.items()}
    names = {"install": libraries.LIBRARIES, "check": libraries.LIBRARIES,
             "learn": tuple(contenders.LEARN), "slow": tuple(contenders.SLOW)}  # fmt: skip
    for command, choices in names.items():
        of[command].add_argument(
            "--only", metavar="NAME", nargs="+", choices=choices, default=choices, help=", ".join(choices)
        )
    for command in ("learn", "slow", "table"):
        of[command].add_argument("--out", type=Path, required=True, help="folder of the records")
    for command in ("learn", "slow"):
        of[command].add_argument(
            "--rounds", type=int, default=3, help="also the seeds: 0, 1, ... (default: 3)"
        )
        of[command].add_argument("--env_steps", type=int, help="of each training (default: the task's)")
    for command in ("check", "learn"):
        of[command].add_argument(
            "--environment", choices=tuple(contenders.TASKS), default=next(iter(contenders.TASKS))
        )
    of["learn"].add_argument("--episodes", type=int, default=10, help="of one evaluation (default: 10)")
    of["slow"].add_argument(
        "--updates_per_env_step", type=float, default=1.0, help="gradient steps an env step (default: 1)"
    )
    return made


_HELP = {
    "install": "make the environments of the libraries, with uv",
    "check": "compare their environments with ours, answer by answer",
    "learn": "train with each in turn; files that are there already are left alone",
    "slow": "train in 1, 4 and 16 simulators of 20 ms an env step",
    "table": "print the tables in Markdown",
}


def _install(options: argparse.Namespace) -> int:
    if shutil.which("uv") is None:
        _print_error("uv is not on the PATH: pip install uv, or see https://docs.astral.sh/uv/")
        return 1
    commands = [command for library in options.only for command in libraries.install_commands(library)]
    return 0 if all(subprocess.run(command, check=False).returncode == 0 for command in commands) else 1


def _check(options: argparse.Namespace) -> int:
    return 0 if _are_equal(options.only, options.environment) else 1


def _are_equal(names: Iterable[str], environment: str) -> bool:
    """Checks all libraries, also after one that differs."""
    equal = [_is_equal(library, environment) for library in names]
    return all(equal)


def _is_equal(library: str, environment: str) -> bool:
    if not libraries.is_installed(library):
        _print_error(f"{library} is not installed: python -m benchmarks.others install --only {library}")
        return False
    found = equality.check(library, environment)
    for line in found:
        _print_error(f"{library}, {environment}: {line}")
    if not found:
        print(f"{library}: {environment} answers exactly as ours", flush=True)
    return not found


def _learn(options: argparse.Namespace) -> int:
    chosen = {name: contenders.LEARN[name] for name in options.only}
    theirs = dict.fromkeys(each.library for each in chosen.values() if each.library != OURS)
    if not _are_equal(theirs, options.environment):
        return 1
    trainings = []
    for seed in range(options.rounds):
        for name, contender in chosen.items():
            job = contenders.learn_job(
                contender, options.environment, options.env_steps, seed, options.episodes
            )
            trainings.append((name, contender, job))
    return _train(trainings, options.out / "learn")


def _slow(options: argparse.Namespace) -> int:
    chosen = {name: contenders.SLOW[name] for name in options.only}
    trainings = []
    for size, seed in itertools.product(contenders.SLOW_SIZES, range(options.rounds)):
        for name, contender in chosen.items():
            job = contenders.slow_job(contender, size, options.env_steps, options.updates_per_env_step, seed)
            trainings.append((name, contender, job))
    return _train(trainings, options.out / "slow")


def _train(trainings: Iterable[tuple[str, Contender, Job]], folder: Path) -> int:
    """Runs the trainings one after the other, also after one that failed; returns 1 if one did."""
    code = 0
    for name, contender, job in trainings:
        path = folder / f"{file_name(name, job)}{SUFFIX}"
        print(path, flush=True)
        if not measure(name, contender, job, path):
            _print_error(f"{name} failed: {beside(path, '.log')}")
            code = 1
    return code


def file_name(name: str, job: Job) -> str:
    """Returns a name that differs for trainings that differ in what the command line sets."""
    slow = f"-{job.environments}-{job.updates_per_env_step:g}" if job.wait_s else ""
    return f"{name}-{job.environment}{slow}-{job.env_steps}-{job.seed}"


def _table(options: argparse.Namespace) -> int:
    print("\n".join(tables.tables(options.out)))
    return 0


def _print_error(line: str) -> None:
    print(f"benchmarks.others: error: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
