"""`completion`: prints the script with which a shell completes command lines.

Prints a script for the shell. For bash and zsh: eval "$(actorlearner completion bash)", in ~/.bashrc or in
~/.zshrc (after compinit). For fish: actorlearner completion fish | source. Commands, flags, shipped
configurations and configuration keys are then completed.
"""

import argparse
import os
from typing import NoReturn

from actorlearner.cli.command import PROGRAM, Commands, add_command, listed, offer, one_of
from actorlearner.errors import EXIT_FINISHED, ConfigurationError

SHELLS = ("bash", "zsh", "fish")

_VARIABLE = "_ARGCOMPLETE"
"""The environment variable that the shells' scripts set."""


def add_to(commands: Commands) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "completion",
        _start,
        summary="print what makes a shell complete these commands",
        description=__doc__,
        example="bash",
    )
    shell = parser.add_argument("shell", metavar="SHELL", type=one_of("SHELL", SHELLS), help=listed(SHELLS))
    offer(shell, lambda: SHELLS)


def is_completing() -> bool:
    """Returns whether a shell started this process to ask for completions."""
    return _VARIABLE in os.environ


def complete(parser: argparse.ArgumentParser) -> NoReturn:
    """Answers the shell and ends the process."""
    import argcomplete

    argcomplete.autocomplete(parser)
    raise SystemExit(0)


def _start(arguments: argparse.Namespace, problems: list[str]) -> int:
    if problems:
        raise ConfigurationError(problems)
    from argcomplete.shell_integration import shellcode

    print(shellcode([PROGRAM], shell=arguments.shell).strip())
    return EXIT_FINISHED
