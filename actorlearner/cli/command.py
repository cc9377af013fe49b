"""How a command of the command line is declared: a subparser of argparse, and the function that starts it."""

import argparse
import dataclasses
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from actorlearner.errors import ConfigurationError

PROGRAM = "actorlearner"

Commands = Any
"""What `ArgumentParser.add_subparsers` returns; argparse does not name its class."""

StartCommand = Callable[[argparse.Namespace, list[str]], int]
"""Starts a command, given its arguments and the problems found in them; returns the exit code.

It raises these problems as a ConfigurationError, with those that it finds itself, before anything starts.
"""

_WIDTH = 80


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that reports a mistake in one line instead of two paragraphs."""

    def error(self, message: str) -> NoReturn:
        """Raises a ConfigurationError."""
        unknown = message.removeprefix("unrecognized arguments: ")
        is_override = unknown != message and "=" in unknown and "--" not in unknown
        advice = "KEY=VALUE has to follow --set" if is_override else f"see '{self.prog} --help'"
        raise ConfigurationError([f"{message}; {advice}"])


def add_command(
    commands: Commands, name: str, start: StartCommand, *, summary: str, description: str | None, example: str
) -> argparse.ArgumentParser:
    """Adds a command and returns its parser, to which the caller adds flags and arguments.

    Args:
      commands: all commands.
      name: the command's name.
      start: the function that runs the command.
      summary: its line in the list of commands.
      description: the text of its own help; the first line of a module's docstring is left out.
      example: arguments that may follow the command's name.
    """
    example = f"  {PROGRAM} {name} {example}".rstrip()
    first, _, body = (description or "").partition("\n\n")
    text = " ".join((body or first).split())
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=textwrap.fill(text, _WIDTH, break_on_hyphens=False),
        epilog=f"example:\n{example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(start=start, example=example)
    return parser


@dataclasses.dataclass(frozen=True)
class _Refused:
    """A value that cannot be used, in the place of the parsed one."""

    problem: str


def parsed_by(shown: str, parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Returns an argparse `type` that keeps a refused value's problem: argparse would stop at the first.

    Args:
      shown: the flag or argument as problems name it.
      parse: turns the text into the value, or raises a ValueError that says what is allowed.
    """

    def convert(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            return _Refused(f"{shown}: {text!r} cannot be used; allowed: {error}")

    return convert


def listed(values: Sequence[str]) -> str:
    """Formats `a, b or c`."""
    return f"{', '.join(values[:-1])} or {values[-1]}"


def one_of(shown: str, values: Sequence[str]) -> Callable[[str], Any]:
    """Returns an argparse `type` that allows these values, see `parsed_by`."""

    def parse(text: str) -> str:
        if text not in values:
            raise ValueError(listed(values))
        return text

    return parsed_by(shown, parse)


def take_problems(arguments: argparse.Namespace) -> list[str]:
    """Returns the problems of all refused values, and sets these values to None."""
    problems = []
    for name, value in vars(arguments).items():
        if isinstance(value, _Refused):
            problems.append(value.problem)
            setattr(arguments, name, None)
    return problems


def offer(action: argparse.Action, values: Callable[[], Iterable[str]]) -> None:
    """Makes shell completion offer these values for an argument, beside names of files."""

    def complete(prefix: str, **_: Any) -> list[str]:
        from argcomplete.completers import FilesCompleter

        return [*values(), *FilesCompleter()(prefix)]

    action.completer = complete  # type: ignore[attr-defined]  # The attribute that argcomplete reads.
