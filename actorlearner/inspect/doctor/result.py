"""What a check finds."""

import enum
from typing import NamedTuple


class Status(enum.Enum):
    """How a check ended, as it is printed."""

    OK = "ok"
    WARN = "warn"
    """Training would work, but not as well as it could, or not under all circumstances."""
    FAIL = "FAIL"


class Result(NamedTuple):
    """What a check found.

    Attributes:
      status: how it ended.
      detail: what is there; or what is wrong, and what to do about it.
    """

    status: Status
    detail: str


def ok(detail: str) -> Result:
    """Nothing is wrong."""
    return Result(Status.OK, detail)


def warn(detail: str) -> Result:
    """Training would work in spite of it."""
    return Result(Status.WARN, detail)


def fail(detail: str) -> Result:
    """Training would not work."""
    return Result(Status.FAIL, detail)
