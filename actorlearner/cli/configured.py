"""Commands that take a configuration: they start with one that is known to work, and a run directory."""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping
from typing import Protocol

from actorlearner.cli.command import Command, Flag, Options
from actorlearner.cli.run_dir import RUN_DIR, given_run_dir
from actorlearner.config.checks import MULTI_WORKER, SUITES
from actorlearner.config.explain import all_keys
from actorlearner.config.load import EnvironmentCheck, load_with_sources
from actorlearner.config.problems import Sources, with_source
from actorlearner.config.schema import Config, EnvironmentConfig
from actorlearner.config.shipped import shipped_configs
from actorlearner.environments.names import check_environment
from actorlearner.environments.quiet import quiet_output
from actorlearner.errors import ConfigurationError
from actorlearner.learning.cluster import learner_cluster
from actorlearner.process.imports import check_numpy
from actorlearner.replay.least_memory import least_memory_problems

_SHIPPED = ", ".join(shipped_configs())

CONFIG = Flag(
    "FILE", "a YAML file" + (f", or a shipped one: {_SHIPPED}" if _SHIPPED else ""), offered=shipped_configs
)

SET = Flag(
    "KEY=VALUE",
    "override keys of the configuration, as in learn.batch_size=128; may be repeated",
    list,
    required=False,
    several=True,
    offered=lambda: (f"{key}=" for key in all_keys()),
)


class Start(Protocol):
    """Starts what a command is for."""

    def __call__(
        self, config: Config, sources: Sources, run_dir: str | None, experiment: str, options: Options
    ) -> int:
        """Returns the exit code.

        Args:
          config: the experiment.
          sources: where the values of its keys come from.
          run_dir: the run directory; None makes a new one under runs/.
          experiment: names a new run directory.
          options: of the command's own flags.
        """


Check = Callable[[Config, Sources], list[str]]
"""Returns what keeps a command from working with a configuration, a line each."""


def configured(
    summary: str,
    description: str,
    example: str,
    start: Start,
    flags: Mapping[str, Flag],
    *checks: Check,
    config: str = "",
    configure: Callable[[Config], bool] | None = None,
    needs_numpy: bool = True,
) -> Command:
    """Makes a command that takes a configuration.

    Args:
      summary: see Command.
      description: see Command.
      example: see Command.
      start: does its work.
      flags: its own.
      *checks: what else must hold of the configuration; the first that finds problems ends the command.
      config: the configuration without `--config`; empty where that is required.
      configure: configures TensorFlow for this process, which nobody can do any more once the user's own code
        has made a tensor; returns whether that code may be imported now. None where it may be at once.
      needs_numpy: whether it is refused with a NumPy that TensorFlow cannot be loaded with.
    """

    def run(options: Options, problems: list[str]) -> int:
        if needs_numpy:
            check_numpy()
        own = {flag: options[flag] for flag in flags if flag in options}
        run_dir = given_run_dir(options, problems)
        check_now: EnvironmentCheck = check_environment
        if configure is not None:
            check_now = _check_shipped
        loaded = _load(options, problems, check_now)
        if loaded is None or problems:
            raise ConfigurationError(problems)
        values, sources = loaded
        first: tuple[Check, ...] = (finds_callbacks,)
        if configure is not None and _has_own_code(values):
            with quiet_output():
                may_import = configure(values)
            first = (_finds_environment, finds_callbacks) if may_import else ()
        for check in (*first, *checks):
            if found := check(values, sources):
                raise ConfigurationError(found)
        try:
            return start(values, sources, run_dir, pathlib.Path(options["config"]).stem, own)
        except ConfigurationError as error:
            raise ConfigurationError([with_source(line, sources) for line in error.problems]) from error

    all_flags = {"config": _config_flag(config), "set": SET, "run_dir": RUN_DIR, **flags}
    return Command(summary, description, example, run, all_flags)


def finds_callbacks(config: Config, sources: Sources) -> list[str]:
    """A Check: every callback can be imported."""
    if not config.callbacks:
        return []
    from actorlearner.callbacks.caller import find_callback

    problems = []
    for name in config.callbacks:
        try:
            with quiet_output():  # Their modules may print.
                find_callback(name)
        except ConfigurationError as error:
            problems += [with_source(line, sources) for line in error.problems]
    return problems


def holds_replay(config: Config, sources: Sources) -> list[str]:
    """A Check for commands that need memory for all of replay on this machine."""
    return least_memory_problems(config, sources)


def starts_one_learner(command: str) -> Check:
    """A Check for a command that starts all roles, and so no group of learners."""

    def check(config: Config, sources: Sources) -> list[str]:
        if config.learn.strategy != MULTI_WORKER:
            return []
        problem = f"learn.strategy: {MULTI_WORKER} cannot work with 'actorlearner {command}', which starts "
        line = f"{problem}one learner; allowed: default, mirrored, mirrored:N or tpu"
        return [with_source(line, sources)]

    return check


def trains_in_its_group(config: Config, sources: Sources) -> list[str]:
    """A Check for a learner: TF_CONFIG describes the group that it is to train in, if any."""
    try:
        learner_cluster(config)
    except ConfigurationError as error:
        return [with_source(line, sources) for line in error.problems]
    return []


def _has_own_code(config: Config) -> bool:
    return config.environment.suite not in SUITES or bool(config.callbacks)


def _check_shipped(environment: EnvironmentConfig, sources: Sources) -> None:
    """Checks an environment whose suite comes with the package, and leaves the user's own for later."""
    if environment.suite in SUITES:
        check_environment(environment, sources)


def _finds_environment(config: Config, sources: Sources) -> list[str]:
    try:
        check_environment(config.environment, sources)
    except ConfigurationError as error:
        return list(error.problems)
    return []


def _load(options: Options, problems: list[str], check: EnvironmentCheck) -> tuple[Config, Sources] | None:
    try:
        return load_with_sources(options["config"], options.get("set", []), check)
    except ConfigurationError as error:
        problems.extend(error.problems)
        return None


def _config_flag(default: str) -> Flag:
    if not default:
        return CONFIG
    return dataclasses.replace(CONFIG, help=f"{CONFIG.help}; default: {default}", default=default)
