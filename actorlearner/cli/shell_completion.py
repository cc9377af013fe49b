"""Completion of command lines by the shell, which asks the program itself for what may come next."""

import argparse
import os
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

SHELLS = ("bash", "zsh", "fish")

_VARIABLE = "_ARGCOMPLETE"
"""Set by the shells' scripts when they ask."""


def is_completing() -> bool:
    """Whether this process was started by a shell that asks for what may come next."""
    return _VARIABLE in os.environ


def offer(action: argparse.Action, offered: Callable[[], Iterable[str]]) -> None:
    """Lets the completion of an argument's values offer these, beside names of files."""

    def complete_value(prefix: str, **_: Any) -> list[str]:
        from argcomplete.completers import FilesCompleter

        return [*offered(), *FilesCompleter()(prefix)]

    action.completer = complete_value  # type: ignore[attr-defined]  # Where argcomplete looks.


def complete(parser: argparse.ArgumentParser) -> NoReturn:
    """Answers the shell, and ends the process."""
    import argcomplete

    argcomplete.autocomplete(parser)
    raise SystemExit(0)


def script(program: str, shell: str) -> str:
    """What a shell has to read so that it asks `program` for completions."""
    from argcomplete.shell_integration import shellcode

    text: str = shellcode([program], shell=shell)
    return text.strip()
