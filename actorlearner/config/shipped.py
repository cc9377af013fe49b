"""The configurations that come with the package, found by name wherever it is installed."""

import itertools
import pathlib
import re

from actorlearner.config.problems import closest, problem
from actorlearner.errors import ConfigurationError

_MODE_LINE = "yaml-language-server:"
"""In the first line of each file, for editors."""

_PACKAGE = pathlib.Path(__file__).parents[1]


def shipped_configs() -> dict[str, pathlib.Path]:
    """Returns the shipped configuration files by name (`sac_pendulum`), in alphabetical order."""
    inside = _PACKAGE / "configs"  # An installed wheel; in a checkout they lie beside the package.
    folder = inside if inside.is_dir() else _PACKAGE.parent / "configs"
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def about(file: pathlib.Path) -> str:
    """Returns the first sentence of the comment at the top of a configuration file, without its brackets."""
    lines = itertools.takewhile(lambda line: line.startswith("#"), file.read_text("utf-8").splitlines())
    text = " ".join(line.lstrip("# ") for line in lines if _MODE_LINE not in line)
    return re.sub(r" \([^)]*\)", "", re.split(r"(?<=\.) ", text)[0])


def find_config(path: str) -> pathlib.Path:
    """Returns the file called `path`, or else the shipped one that `path` names.

    Args:
      path: a YAML file; or `configs/NAME.yaml`, `NAME.yaml` or `NAME` of a shipped one.

    Raises:
      ConfigurationError: neither exists.
    """
    file = pathlib.Path(path)
    if file.exists() and not file.is_dir():
        return file
    shipped = shipped_configs()
    for name, shipped_file in shipped.items():
        if path in (name, f"{name}.yaml", f"configs/{name}.yaml"):
            return shipped_file
    wrong = "is a directory" if path and file.is_dir() else "no such file"
    allowed = "a YAML file" + (f", or one of the shipped {', '.join(shipped)}" if shipped else "")
    raise ConfigurationError([problem(path or "''", wrong, allowed, closest(file.stem, shipped), "--config")])
