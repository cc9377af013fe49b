"""The command line: parses arguments, starts a command, and reports each problem in one line.

Nothing is imported here that a refused command line does not need; TensorFlow is imported last.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

import actorlearner
from actorlearner.cli import completion
from actorlearner.cli.command import PROGRAM, Parser, take_problems
from actorlearner.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, ConfigurationError, RunError

_EXIT_CODES = """\
exit codes:
  0           finished
  1           the run failed; one line says why
  2           bad usage or configuration; one line per problem, before anything starts
  130, 143    after SIGINT, SIGTERM, once everything has been saved and closed"""

_COMMANDS = [
    importlib.import_module(f"actorlearner.cli.{name}")
    for name in (
        "local", "ray", "sweep", "roles", "certificate", "rollout", "video", "doctor", "health",
        "configs", "config", "completion", "plot", "report", "status",
    )
]  # fmt: skip
"""The modules of this folder that add commands, in the order of `--help`."""

_MAX_LINE = 2_000


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
      argv: the arguments after the program's name; by default those of this process.

    Returns:
      The exit code. Every problem is one line on standard error.
    """
    try:
        parser = make_parser()
        if completion.is_completing():
            completion.complete(parser)
        arguments = parser.parse_args(argv)
        add_working_directory()
        code: int = arguments.start(arguments, take_problems(arguments))
        print(end="", flush=True)  # `sys.stdout` is None if it was closed.
        return code
    except ConfigurationError as error:
        for line in error.problems:
            _complain(line)
        return EXIT_USAGE
    except RunError as error:
        _complain(str(error))
        for line in error.details:
            print(line, file=sys.stderr)
        return EXIT_FAILED
    except BrokenPipeError:  # The reader of the output stopped reading, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Takes what Python still flushes at its end.
        return EXIT_FAILED
    except OSError as error:  # For example a full disk, where no code nearer to it reports it better.
        _complain(str(error))
        return EXIT_FAILED
    except KeyboardInterrupt:  # Before a role handles signals.
        return EXIT_INTERRUPTED


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of all commands; `parse_args` sets `start` to the command's function."""
    parser = Parser(
        prog=PROGRAM,
        description="Trains reinforcement learning agents with actors and a learner that talk over Reverb.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {actorlearner.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    for module in _COMMANDS:
        module.add_to(commands)
    examples = [command.get_default("example") for command in commands.choices.values()]
    parser.epilog = "\n".join(["examples:", *examples, "", _EXIT_CODES])
    return parser


def add_working_directory() -> None:
    """Makes modules in the working directory importable; last in sys.path, so that they shadow nothing."""
    try:
        folder = os.getcwd()
    except OSError as error:
        raise ConfigurationError([f"the working directory cannot be used: {error.strerror}"]) from None
    if folder not in sys.path:
        sys.path.append(folder)


def _complain(message: str) -> None:
    line = " ".join(message.splitlines())
    # Text from a file or a flag must not reach the terminal as an escape sequence.
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
    if len(line) > _MAX_LINE:
        line = f"{line[: _MAX_LINE // 2]} ... {line[-_MAX_LINE // 2 :]}"
    print(f"{PROGRAM}: error: {line}", file=sys.stderr)
