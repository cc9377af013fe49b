"""The command that shows a configuration, and what its keys are for."""

import dataclasses

from actorlearner.agents.configuration import load_with_sources
from actorlearner.agents.registry import agent_classes
from actorlearner.cli.command import Command, Flag, Options
from actorlearner.cli.configured import CONFIG, SET
from actorlearner.config.explain import all_keys, explain
from actorlearner.config.problems import show
from actorlearner.config.resolved import declared_values
from actorlearner.environments.names import environment_problems
from actorlearner.errors import EXIT_FINISHED, ConfigurationError
from actorlearner.replay.checks import replay_problems


def _config(options: Options, problems: list[str]) -> int:
    if "config" not in options:
        problems += ["--set: there is no configuration to change; allowed: with --config"] * (
            "set" in options
        )
        if "explain" not in options:
            problems.append("nothing is asked for; allowed: --config FILE, --explain KEY, or both")
    if problems:
        raise ConfigurationError(problems)
    if "config" not in options:
        print(explain(options["explain"], agent_classes()))
        return EXIT_FINISHED
    checks = (replay_problems, environment_problems)
    config, sources = load_with_sources(options["config"], options.get("set", []), checks)
    if "explain" in options:
        print(explain(options["explain"], agent_classes(), config, sources))
        return EXIT_FINISHED
    values = {key: show(value) for key, value in declared_values(config).items()}
    for key, value in values.items():
        print(f"{key + ': ' + value:<44}  # {sources[key]}")
    return EXIT_FINISHED


CONFIG_COMMAND = Command(
    "say what configuration keys are for, and what they are",
    "With --explain, prints the documentation of a key, or of all keys of a section: what it is for, what "
    "is allowed, its default, and its value in --config, if that is given. Without, prints every key of "
    "--config with where its value comes from.",
    "--explain replay.updates_per_env_step",
    _config,
    {
        "explain": Flag(
            "KEY",
            "a key, as in learn.batch_size, or a section, as in learn",
            required=False,
            offered=lambda: all_keys(agent_classes()),
        ),
        "config": dataclasses.replace(CONFIG, required=False),
        "set": SET,
    },
)
