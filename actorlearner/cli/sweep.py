"""`sweep`: searches for the best values of some keys.

Trains with many sets of values (trials), one after the other, each as `local` does; Optuna chooses the next
values from the returns so far. A trial's score is the mean of the last three evaluations, over all its seeds.
A trial ends early if its returns are below the median of those before it. The same command with --sweep_dir
continues a sweep; several machines share one with --storage and the same name of --sweep_dir.
"""

import argparse
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from actorlearner.agents.configuration import load_config
from actorlearner.cli.arguments import add_count, checked_run_dir
from actorlearner.cli.command import Commands, add_command
from actorlearner.cli.experiment import Experiment, add_config, load_experiment, one_learner_problems
from actorlearner.config.checks import cannot_work
from actorlearner.config.schema import Config
from actorlearner.environments.checks import environment_problems
from actorlearner.errors import ConfigurationError
from actorlearner.records.run_directory import NEW_RUNS, RunDirectory, new_run_directory
from actorlearner.replay.checks import replay_problems
from actorlearner.sweep.space import read_space


def add_to(commands: Commands) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "sweep",
        _start,
        summary="search for the best values of some keys, with Optuna",
        description=__doc__,
        example="--config ppo_pendulum --space examples/sweep_pendulum.yaml --trials 20 "
        "--set agent.fragment_length=64",
    )
    add_config(parser, required=True)
    parser.add_argument(
        "--space",
        metavar="FILE",
        required=True,
        help="a YAML file: key to a list of values, or to {low: A, high: B, log: true}; keys "
        "separated by commas get the same value",
    )
    add_count(parser, "--trials", "how many sets of values are tried in all", 20)
    seeds = "runs in each trial; the first one has the seed of the configuration, the next the seed after it"
    add_count(parser, "--seeds", seeds, 1)
    parser.add_argument(
        "--sweep_dir",
        metavar="DIR",
        help=f"the sweep's directory; a sweep in it is continued. Without it, a new one under {NEW_RUNS}/",
    )
    parser.add_argument(
        "--storage",
        metavar="URL",
        help="a database for several machines, as in postgresql://...; default: study.db in --sweep_dir",
    )


def _start(arguments: argparse.Namespace, problems: list[str]) -> int:
    directory = checked_run_dir(arguments, problems, "--sweep_dir")
    experiment = load_experiment(arguments, problems, one_learner_problems, _evaluation_problems)
    checks = (replay_problems, environment_problems, _evaluation_problems)

    def check(overrides: Sequence[str]) -> None:
        load_config(arguments.config, [*arguments.set, *overrides], checks)

    space = read_space(arguments.space, check)
    try:
        from actorlearner.sweep.sweep import run_sweep
        from actorlearner.sweep.trial import SweepSettings
    except ModuleNotFoundError as error:
        if error.name != "optuna":
            raise
        allowed = "pip install 'actorlearner[sweep]' in this environment"
        raise ConfigurationError([f"sweep: {error.name} is not installed; allowed: {allowed}"]) from error
    overrides = tuple(arguments.set)
    settings = SweepSettings(
        arguments.config, overrides, experiment.config, space, arguments.trials, arguments.seeds
    )
    made = _make_directory(directory, experiment)
    try:
        return run_sweep(settings, made.path, arguments.storage)
    except ConfigurationError:
        made.discard()
        raise


def _evaluation_problems(config: Config, broken: Collection[str] = ()) -> Iterator[str]:
    """A Check, and a CommandCheck: evaluation is on."""
    if config.evaluate.interval is None:
        yield cannot_work(config, "evaluate.interval", "an integer: a sweep compares evaluations")


def _make_directory(directory: str | None, experiment: Experiment) -> RunDirectory:
    """Returns the sweep's directory, which `discard` removes if it was made here and is empty."""
    if directory is None:
        return new_run_directory(f"{experiment.name}-sweep")
    made = RunDirectory(Path(directory))
    made.make()
    return made
