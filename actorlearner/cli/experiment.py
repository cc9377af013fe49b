"""Flags that name an experiment (--config, --set, --run_dir), and its checks before a command starts."""

import argparse
import contextlib
import dataclasses
import pathlib
from collections.abc import Callable, Collection, Iterable, Iterator

from actorlearner.agents.configuration import load_with_sources
from actorlearner.agents.registry import agent_classes
from actorlearner.cli.arguments import checked_run_dir, count
from actorlearner.cli.command import offer, parsed_by
from actorlearner.config.checks import MULTI_WORKER, imports_own_code
from actorlearner.config.explain import all_keys
from actorlearner.config.problems import Sources, problem, with_source
from actorlearner.config.schema import Config
from actorlearner.config.shipped import shipped_configs
from actorlearner.environments.checks import environment_problems
from actorlearner.environments.quiet import quiet_output
from actorlearner.errors import ConfigurationError
from actorlearner.process.tensorflow_setup import check_numpy
from actorlearner.records.run_directory import NEW_RUNS
from actorlearner.replay.checks import replay_problems

CommandCheck = Callable[[Config], Iterable[str]]
"""Returns what keeps a command from working with a configuration, one line per problem; or raises it as a
ConfigurationError. `load_experiment` adds the sources of the keys."""


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A configuration that passed all checks, and where its run goes.

    Attributes:
      config: the configuration.
      sources: where the values of its keys come from.
      run_dir: the run directory; None for a new one under runs/.
      name: names a new run directory.
    """

    config: Config
    sources: Sources
    run_dir: str | None
    name: str


def add_experiment(parser: argparse.ArgumentParser) -> None:
    """Adds --config, which is required, --set and --run_dir."""
    add_config(parser, required=True)
    text = f"the run directory; a run in it is resumed. Without it, a new directory under {NEW_RUNS}/"
    parser.add_argument("--run_dir", metavar="DIR", help=text)


def add_config(parser: argparse.ArgumentParser, default: str | None = None, *, required: bool) -> None:
    """Adds --config and --set."""
    shipped = ", ".join(shipped_configs())
    text = "a YAML file" + (f", or a shipped one: {shipped}" if shipped else "")
    text += f"; default: {default}" if default else ""
    config = parser.add_argument("--config", metavar="FILE", required=required, default=default, help=text)
    offer(config, shipped_configs)
    text = "override keys of the configuration, as in learn.batch_size=128; may be repeated"
    overrides = parser.add_argument(
        "--set", metavar="KEY=VALUE", nargs="+", action="extend", default=[], help=text
    )
    offer(overrides, lambda: (f"{key}=" for key in all_keys(agent_classes())))


def add_collect_actors(parser: argparse.ArgumentParser, text: str) -> None:
    """Adds the required flag --collect_actors, which sets `collect.actors`."""
    parser.add_argument(
        "--collect_actors", metavar="N", required=True, type=parsed_by("--collect_actors", count), help=text
    )


def load_experiment(
    arguments: argparse.Namespace,
    problems: list[str],
    *checks: CommandCheck,
    prepare: Callable[[Config], bool] | None = None,
    needs_numpy: bool = True,
) -> Experiment:
    """Loads the experiment and checks it.

    Args:
      arguments: of a command with `add_experiment` or `add_config`, and perhaps `add_collect_actors`, whose
        value is appended to `arguments.set`.
      problems: found so far.
      *checks: further checks, in order; the first that finds problems ends the command.
      prepare: configures TensorFlow before the user's own code, which may use TensorFlow, is imported;
        returns whether that code may be imported and checked now. None if TensorFlow needs no configuration.
      needs_numpy: whether to refuse an installed NumPy that TensorFlow cannot be loaded with.

    Raises:
      ConfigurationError: with all problems so far and those of the configuration.
    """
    if needs_numpy:
        check_numpy()
    run_dir = checked_run_dir(arguments, problems) if "run_dir" in arguments else None
    if (actors := getattr(arguments, "collect_actors", None)) is not None:
        arguments.set.append(f"collect.actors={actors}")
    environment_check = environment_problems if prepare is None else _shipped_environment_problems
    try:
        config, sources = load_with_sources(
            arguments.config, arguments.set, (replay_problems, environment_check)
        )
    except ConfigurationError as error:
        raise ConfigurationError([*problems, *error.problems]) from error
    if problems:
        raise ConfigurationError(problems)
    experiment = Experiment(config, sources, run_dir, pathlib.Path(arguments.config).stem)
    with naming_sources(experiment):
        for check in (*_own_code_checks(config, prepare), *checks):
            if found := list(check(config)):
                raise ConfigurationError(found)
    return experiment


@contextlib.contextmanager
def naming_sources(experiment: Experiment) -> Iterator[None]:
    """Adds where a key's value comes from to the problems of a ConfigurationError."""
    try:
        yield
    except ConfigurationError as error:
        lines = [with_source(line, experiment.sources) for line in error.problems]
        raise ConfigurationError(lines) from error


def one_learner_problems(config: Config) -> Iterator[str]:
    """A CommandCheck for a command that starts all roles, and so no group of learners."""
    if config.learn.strategy == MULTI_WORKER:
        wrong = f"{MULTI_WORKER} cannot work with a command that starts one learner"
        yield problem("learn.strategy", wrong, "default, mirrored, mirrored:N or tpu")


def _callback_problems(config: Config) -> Iterator[str]:
    """A CommandCheck: every callback can be imported."""
    if not config.callbacks:
        return
    from actorlearner.callbacks.caller import find_callback

    for name in config.callbacks:
        try:
            with quiet_output():  # Their modules may print.
                find_callback(name)
        except ConfigurationError as error:
            yield from error.problems


def _own_code_checks(config: Config, prepare: Callable[[Config], bool] | None) -> tuple[CommandCheck, ...]:
    """Returns the checks that import the user's code; arguments as for `load_experiment`."""
    if prepare is None:  # The environment is checked already.
        return (_callback_problems,)
    if not (imports_own_code(config.environment) or config.callbacks):
        return ()
    with quiet_output():
        if not prepare(config):
            return ()
    return environment_problems, _callback_problems


def _shipped_environment_problems(config: Config, broken: Collection[str] = ()) -> Iterable[str]:
    """Checks an environment that needs no code of the user's; `load_experiment` checks others later."""
    return () if imports_own_code(config.environment) else environment_problems(config, broken)
