"""The command line: reads arguments, starts a command with them, and says in one line what goes wrong.

Only what a mistake needs is imported up here; TensorFlow waits until nothing is left to refuse.
"""

import argparse
import os
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, NoReturn

import actorlearner
from actorlearner.cli.all import COMMANDS
from actorlearner.cli.command import Command, Flag, Options
from actorlearner.cli.shell_completion import complete, is_completing, offer
from actorlearner.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, ConfigurationError, RunError

PROGRAM = "actorlearner"

_EXIT_CODES = """\
exit codes:
  0           finished
  1           the run failed; one line says why
  2           bad usage or configuration; one line per problem, before anything starts
  130, 143    after SIGINT, SIGTERM, once everything has been saved and closed"""

_WIDTH = 80
_LONGEST_LINE = 2_000


class _Parser(argparse.ArgumentParser):
    """Reports a mistake in one line instead of two paragraphs."""

    def error(self, message: str) -> NoReturn:
        raise ConfigurationError([f"{message}; see '{self.prog} --help'"])


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
      argv: the arguments after the program's name; by default those of this process.

    Returns:
      The exit code. Every problem is one line on standard error.
    """
    try:
        whole = parser()
        if is_completing():
            complete(whole)
        code = _run(whole.parse_args(argv))
        sys.stdout.flush()
        return code
    except ConfigurationError as error:
        for line in error.problems:
            _complain(line)
        return EXIT_USAGE
    except RunError as error:
        _complain(str(error))
        print(*error.details, sep="\n", end="\n" if error.details else "", file=sys.stderr)
        return EXIT_FAILED
    except BrokenPipeError:  # Who reads the output has enough, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # For what is still to be flushed.
        return EXIT_FAILED
    except OSError as error:  # Of a full disk, say; what can be foreseen is said where it happens.
        _complain(str(error))
        return EXIT_FAILED
    except KeyboardInterrupt:  # Before a role has taken over the signals.
        return EXIT_INTERRUPTED


def _complain(message: str) -> None:
    line = " ".join(message.splitlines())
    # What a file or a flag says must not reach the terminal as a command.
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
    if len(line) > _LONGEST_LINE:
        line = f"{line[: _LONGEST_LINE // 2]} ... {line[-_LONGEST_LINE // 2 :]}"
    print(f"{PROGRAM}: error: {line}", file=sys.stderr)


def _run(arguments: argparse.Namespace) -> int:
    try:
        folder = os.getcwd()
    except OSError as error:
        raise ConfigurationError([f"the working directory cannot be used: {error.strerror}"]) from None
    if folder not in sys.path:  # A script has its own folder there; last, so that nothing is shadowed.
        sys.path.append(folder)
    problems: list[str] = []
    command = COMMANDS[arguments.command]
    return command.start(_read_options(command, arguments, problems), problems)


def _read_options(command: Command, arguments: argparse.Namespace, problems: list[str]) -> Options:
    """Reads what is given to a command; here rather than in argparse, which stops at the first mistake."""
    options: Options = {}
    named = [(f"--{name}", name, flag) for name, flag in command.flags.items()]
    named += [(flag.metavar, name, flag) for name, flag in command.arguments.items()]
    for shown, name, flag in named:
        given: Any = getattr(arguments, name)
        if given is None:
            continue
        try:
            options[name] = given if flag.switch else flag.read(given)
        except ValueError as error:
            problems.append(f"{shown}: {given!r} cannot be used; allowed: {error}")
    return options


def parser() -> argparse.ArgumentParser:
    """Returns what parses the command line; its values are texts, which the commands' flags read."""
    whole = _Parser(
        prog=PROGRAM,
        description="Trains reinforcement learning agents with actors and a learner that talk over Reverb.",
        epilog=_examples(*COMMANDS) + "\n\n" + _EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    whole.add_argument("--version", action="version", version=f"{PROGRAM} {actorlearner.__version__}")
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for name, command in COMMANDS.items():
        of_command = commands.add_parser(
            name,
            help=command.summary,
            description=textwrap.fill(command.description, _WIDTH),
            epilog=_examples(name),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        for argument, flag in command.arguments.items():
            added = of_command.add_argument(argument, **_counted(flag), metavar=flag.metavar, help=flag.help)
            offer(added, flag.offered)
        for flag_name, flag in command.flags.items():
            _add_flag(of_command, flag_name, flag)
    return whole


def _add_flag(of_command: argparse.ArgumentParser, name: str, flag: Flag) -> None:
    if flag.switch:
        of_command.add_argument(f"--{name}", action="store_const", const=True, help=flag.help)
        return
    added = of_command.add_argument(
        f"--{name}",
        action="extend" if flag.several else "store",
        nargs="+" if flag.several else None,
        metavar=flag.metavar,
        required=flag.required and flag.default is None,
        default=flag.default,
        help=flag.help,
    )
    offer(added, flag.offered)


def _counted(flag: Flag) -> dict[str, Any]:
    """How many values an argument takes."""
    if flag.several:
        return {"nargs": "+" if flag.required else "*"}
    return {} if flag.required else {"nargs": "?"}


def _examples(*names: str) -> str:
    lines = [f"  {PROGRAM} {name} {COMMANDS[name].example}".rstrip() for name in names]
    return "\n".join(["examples:" if len(names) > 1 else "example:", *lines])
