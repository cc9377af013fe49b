"""`config`: explains configuration keys, and shows a configuration.

With --explain, prints the documentation of a key, or of all keys of a section: what it is for, what is
allowed, its default, and its value in --config, if that is given. Without, prints every key of --config with
where its value comes from.
"""

import argparse

from actorlearner.agents.configuration import load_with_sources
from actorlearner.agents.registry import agent_classes
from actorlearner.cli.command import Commands, add_command, offer
from actorlearner.cli.experiment import add_config
from actorlearner.config.explain import all_keys, explain
from actorlearner.config.problems import show
from actorlearner.config.resolved import declared_values
from actorlearner.environments.checks import environment_problems
from actorlearner.errors import EXIT_FINISHED, ConfigurationError
from actorlearner.replay.checks import replay_problems


def add_to(commands: Commands) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "config",
        _start,
        summary="explain configuration keys, and show a configuration",
        description=__doc__,
        example="--explain replay.updates_per_env_step",
    )
    key = parser.add_argument(
        "--explain", metavar="KEY", help="a key, as in learn.batch_size, or a section, as in learn"
    )
    offer(key, lambda: all_keys(agent_classes()))
    add_config(parser, required=False)


def _start(arguments: argparse.Namespace, problems: list[str]) -> int:
    if arguments.config is None:
        if arguments.set:
            problems.append("--set: there is no configuration to change; allowed: with --config")
        if arguments.explain is None:
            problems.append("nothing is requested; allowed: --config FILE, --explain KEY, or both")
    if problems:
        raise ConfigurationError(problems)
    if arguments.config is None:
        print(explain(arguments.explain, agent_classes()))
        return EXIT_FINISHED
    config, sources = load_with_sources(
        arguments.config, arguments.set, (replay_problems, environment_problems)
    )
    if arguments.explain is not None:
        print(explain(arguments.explain, agent_classes(), config, sources))
        return EXIT_FINISHED
    for key, value in declared_values(config).items():
        print(f"{key + ': ' + show(value):<44}  # {sources[key]}")
    return EXIT_FINISHED
