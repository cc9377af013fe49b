"""The command that prints what a shell needs for completing command lines."""

from actorlearner.cli.command import Command, Flag, Options
from actorlearner.cli.shell_completion import SHELLS, script
from actorlearner.errors import EXIT_FINISHED, ConfigurationError


def _shell(text: str) -> str:
    if text not in SHELLS:
        raise ValueError(", ".join(SHELLS))
    return text


def _completion(options: Options, problems: list[str]) -> int:
    if problems:
        raise ConfigurationError(problems)
    print(script("actorlearner", options["shell"]))
    return EXIT_FINISHED


COMPLETION = Command(
    "print what makes a shell complete these commands",
    'Prints a script for the shell. For bash and zsh: eval "$(actorlearner completion bash)", in ~/.bashrc '
    "or in ~/.zshrc (after compinit). For fish: actorlearner completion fish | source. Commands, flags, "
    "shipped configurations and configuration keys are then completed.",
    "bash",
    _completion,
    {},
    {"shell": Flag("SHELL", f"{', '.join(SHELLS[:-1])} or {SHELLS[-1]}", _shell, offered=lambda: SHELLS)},
)
