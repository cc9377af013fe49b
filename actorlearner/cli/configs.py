"""`configs`: lists the configurations that come with the package.

Lists the configurations that --config takes by name, with what each is for.
"""

import argparse
import textwrap

from actorlearner.cli.command import Commands, add_command
from actorlearner.config.shipped import about, shipped_configs
from actorlearner.errors import EXIT_FINISHED, ConfigurationError

_COLUMNS = 80


def add_to(commands: Commands) -> None:
    """Adds the command."""
    add_command(
        commands,
        "configs",
        _start,
        summary="list the configurations that come with it",
        description=__doc__,
        example="",
    )


def _start(arguments: argparse.Namespace, problems: list[str]) -> int:
    if problems:
        raise ConfigurationError(problems)
    shipped = shipped_configs()
    width = max(map(len, shipped), default=0)
    for name, file in shipped.items():
        text = f"{name:<{width}}  {about(file)}"
        print(textwrap.fill(text, _COLUMNS, subsequent_indent=" " * (width + 2), break_on_hyphens=False))
    return EXIT_FINISHED
