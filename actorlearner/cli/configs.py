"""The command that lists the configurations that come with the package."""

import textwrap

from actorlearner.cli.command import Command, Options
from actorlearner.config.shipped import about, shipped_configs
from actorlearner.errors import EXIT_FINISHED, ConfigurationError

_COLUMNS = 80


def _configs(options: Options, problems: list[str]) -> int:
    if problems:
        raise ConfigurationError(problems)
    shipped = shipped_configs()
    width = max(map(len, shipped), default=0)
    for name, file in shipped.items():
        text = f"{name:<{width}}  {about(file)}"
        print(textwrap.fill(text, _COLUMNS, subsequent_indent=" " * (width + 2), break_on_hyphens=False))
    return EXIT_FINISHED


CONFIGS = Command(
    "list the configurations that come with it",
    "Lists the configurations that --config takes by name, with what each is for.",
    "",
    _configs,
    {},
)
