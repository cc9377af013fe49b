"""The errors that end a command, and the exit codes."""

from collections.abc import Sequence

EXIT_FINISHED = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143

ERROR_PREFIX = "actorlearner: error: "
"""A command reports an error in a line that starts with this."""


def one_line(error: BaseException) -> str:
    """Returns the class and message of an error of foreign code, as one line of at most 200 characters."""
    name = type(error).__name__
    try:
        message = str(error)
    except Exception:  # The error's own code is broken, too.
        message = ""
    return " ".join((f"{name}: {message}" if message else name).split())[:200]


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
