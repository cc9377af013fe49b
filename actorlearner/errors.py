"""The errors that end a command, and the exit codes."""

import re
from collections.abc import Sequence

EXIT_FINISHED = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143

ERROR_PREFIX = "actorlearner: error: "
"""A command reports an error in a line that starts with this."""


_HEADING = re.compile(
    r"Graph execution error:|Detected at node |<stack traces unavailable>|  File |Exception encountered when "
)
"""Begins the lines that TensorFlow and Keras put before the reason of an error."""


def one_line(error: BaseException) -> str:
    """Returns the class and message of an error of foreign code, as one line of at most 200 characters."""
    return _with_class(error, _lines(error))[:200]


def first_line(error: BaseException) -> str:
    """Returns the class of an error of foreign code and the first line of its message."""
    return _with_class(error, _lines(error)[:1])


def _with_class(error: BaseException, lines: Sequence[str]) -> str:
    name = type(error).__name__
    return " ".join(" ".join([f"{name}:", *lines] if lines else [name]).split())


def _lines(error: BaseException) -> Sequence[str]:
    """Returns the lines of an error's message that are not empty, without headings if there are others."""
    try:
        lines = [line for line in str(error).splitlines() if line.strip()]
    except Exception:  # The error's own code is broken, too.
        return []
    return [line for line in lines if not _HEADING.match(line)] or lines


class ConfigurationError(Exception):
    """The configuration or the command line cannot work: exit code 2, one line per problem.

    Attributes:
      problems: one self-contained line each, with the key, the value, its source and what is allowed.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class RunError(Exception):
    """The run failed: exit code 1, and the one-line message gives the reason.

    Attributes:
      details: lines to show below the message, such as the end of a log.
    """

    def __init__(self, message: str, details: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.details = tuple(details)
