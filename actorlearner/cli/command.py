"""What a command is: its help, its flags, and the function that it starts."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Options = dict[str, Any]
"""What the flags of a command were read as, by their names; those that were left out are not in it."""


@dataclasses.dataclass(frozen=True)
class Flag:
    """A flag, or an argument without one.

    Attributes:
      help: a line of `--help`.
      read: turns the text into the option, or raises a ValueError that says what is allowed. Of a flag with
        several values, it turns the list of texts.
      default: the text where the flag is not given.
      required: whether it has to be given, where it has no default.
      several: whether it takes one value or more, and may be repeated.
      switch: whether it takes no value; its option is then True.
      offered: returns the values that a shell's completion offers, beside names of files.
    """

    metavar: str
    help: str
    read: Callable[[Any], Any] = str
    default: str | None = None
    required: bool = True
    several: bool = False
    switch: bool = False
    offered: Callable[[], Iterable[str]] = tuple


@dataclasses.dataclass(frozen=True)
class Command:
    """One command.

    Attributes:
      summary: its line in the list of commands.
      description: what its own help begins with.
      example: what may follow its name.
      start: does its work, once all flags are read; returns the exit code. It is given the options and the
        problems found so far, and raises them, with those that it finds itself, before anything starts.
      flags: by their names, without dashes.
      arguments: what it takes without flags, in order; only the last may have several values.
    """

    summary: str
    description: str
    example: str
    start: Callable[[Options, list[str]], int]
    flags: Mapping[str, Flag]
    arguments: Mapping[str, Flag] = dataclasses.field(default_factory=dict)
