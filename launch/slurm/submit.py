#!/usr/bin/env python3
"""Submit a run to Slurm: a job for replay server, learner and eval actor, and a job array of collect actors.

Example:
    .venv/bin/python launch/slurm/submit.py --config sac_halfcheetah --run_dir runs/cheetah \
        --collect_actors 8 --main_sbatch=--gpus=1 -- --partition=lab --time=4:00:00

What follows `--` goes to sbatch for both jobs.
"""

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from actorlearner.cli.command import Parser, parsed_by, take_problems
from actorlearner.cli.experiment import (
    add_collect_actors,
    add_config,
    load_experiment,
    one_learner_problems,
)
from actorlearner.cli.main import add_working_directory
from actorlearner.errors import EXIT_FAILED, EXIT_FINISHED, EXIT_USAGE, ConfigurationError, RunError
from actorlearner.network.certificate import CERTIFICATE_VARIABLE, make_certificate

_FOLDER = Path(__file__).resolve().parent
_SLURM_S = 120.0


def main(argv: Sequence[str]) -> int:
    """Submits a run; returns the exit code. Every problem is one line on standard error."""
    try:
        submit(argv)
    except (ConfigurationError, RunError) as error:
        for line in str(error).splitlines():
            print(f"submit.py: error: {line}", file=sys.stderr)
        return EXIT_USAGE if isinstance(error, ConfigurationError) else EXIT_FAILED
    return EXIT_FINISHED


def submit(argv: Sequence[str]) -> None:
    """Checks the configuration, makes the run's certificate, and submits both jobs.

    Raises:
      ConfigurationError: the command line or the configuration cannot work; nothing was submitted.
      RunError: sbatch refused a job; no job is left.
    """
    own, sbatch = list(argv), []
    if "--" in own:
        place = own.index("--")
        own, sbatch = own[:place], own[place + 1 :]
    arguments = _parser().parse_args(own)
    add_working_directory()
    problems = take_problems(arguments)
    if arguments.run_dir is None:
        problems.append(
            "--run_dir: it is missing; allowed: a directory that the main job's node can write to"
        )
    experiment = load_experiment(arguments, problems, one_learner_problems, needs_numpy=False)
    main, collect = _submit_jobs(arguments, sbatch, experiment.name)
    print(f"run directory:   {arguments.run_dir}")
    print(f"main job:        {main}    replay server, learner, eval actor")
    print(f"collect actors:  {collect}    tasks 0 to {arguments.collect_actors - 1}")
    print(f"look at it with: actorlearner status {arguments.run_dir}/learner")
    print(f"end it with:     scancel {main} {collect}")


def _parser() -> Parser:
    parser = Parser(
        prog="submit.py",
        usage="%(prog)s --config FILE [--set KEY=VALUE ...] --run_dir DIR --collect_actors N [-- OPTIONS]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_config(parser, required=True)
    parser.add_argument(
        "--run_dir", metavar="DIR", help="where everything is written, on the main job's node; required"
    )
    add_collect_actors(parser, "the number of collect actors, which are the tasks of the job array")
    for job in ("main", "collect"):
        name = f"--{job}_sbatch"
        text = f"options of sbatch for the {job} job alone, as one argument"
        parser.add_argument(name, metavar="OPTIONS", default=[], type=parsed_by(name, _options), help=text)
    return parser


def _options(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        raise ValueError("options as in a shell, with each quote closed") from None


def _submit_jobs(arguments: argparse.Namespace, sbatch: Sequence[str], name: str) -> tuple[str, str]:
    """Submits the main job and the job array; returns their ids."""
    config, actors = arguments.config, arguments.collect_actors
    config = os.path.abspath(config) if os.path.isfile(config) else config
    role = ["--config", config, "--set", *arguments.set]
    # Not in a flag of sbatch, which everybody on this machine could read.
    environment = os.environ | {CERTIFICATE_VARIABLE: make_certificate().decode()}
    main = _sbatch(
        [f"--job-name={name}", *sbatch, *arguments.main_sbatch],
        [f"{_FOLDER}/main.sbatch", sys.executable, os.path.abspath(arguments.run_dir), *role],
        environment,
    )
    tasks = (f"--job-name={name}", f"--array=0-{actors - 1}", f"--dependency=after:{main}")
    try:
        collect = _sbatch(
            [*tasks, *sbatch, *arguments.collect_sbatch],
            [f"{_FOLDER}/collect.sbatch", sys.executable, main, str(actors), *role],
            environment,
        )
    except RunError:
        _run(["scancel", main], environment)
        raise
    return main, collect


def _sbatch(options: Sequence[str], script: Sequence[str], environment: Mapping[str, str]) -> str:
    """Submits a job; returns its id."""
    return _run(["sbatch", "--parsable", *options, *script], environment).strip().partition(";")[0]


def _run(command: Sequence[str], environment: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_SLURM_S, check=False
        )
    except FileNotFoundError:
        raise RunError(f"there is no {command[0]} here; allowed: a machine that submits to Slurm") from None
    except subprocess.TimeoutExpired:
        raise RunError(f"{command[0]} has not answered within {_SLURM_S:.0f} s") from None
    if done.returncode:
        raise RunError(f"{command[0]} failed, exit code {done.returncode}: {' '.join(done.stderr.split())}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
