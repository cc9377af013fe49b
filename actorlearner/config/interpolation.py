"""OmegaConf's interpolations: values such as `${learn.batch_size}` that are computed from others."""

import re
import warnings
from collections.abc import Mapping
from typing import Any

from omegaconf import Container, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from actorlearner.config.document import MAX_LEVELS

_START = re.compile(r"(\\*)\$\{")
_LONGEST_REASON = 300
_MISSING = re.compile(r"\\*\?\?\?")


class InterpolationError(Exception):
    """A value cannot be computed; the message says why in one line."""


def is_interpolated(value: Any) -> bool:
    """Whether OmegaConf would read anything in `value` as more than it says."""
    if isinstance(value, dict):
        return any(map(is_interpolated, value.values()))
    if isinstance(value, list):
        return any(map(is_interpolated, value))
    return isinstance(value, str) and bool("${" in value or _MISSING.fullmatch(value))


def escape(value: Any) -> Any:
    """`value` with its text written so that OmegaConf reads it literally."""
    if isinstance(value, dict):
        return {name: escape(element) for name, element in value.items()}
    if isinstance(value, list):
        return [escape(element) for element in value]
    if not is_interpolated(value):
        return value
    escaped = _START.sub(lambda start: start[1] * 2 + "\\${", value)
    return "\\" + escaped if _MISSING.fullmatch(escaped) else escaped


class Interpolator:
    """Computes interpolations in the tree of all values; they may refer to any key, given or default."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        """Starts with the given dotted keys; a value that OmegaConf cannot parse is left out."""
        self._tree: DictConfig = OmegaConf.create({})
        self._errors: dict[str, str] = {}
        for key, value in values.items():
            try:
                OmegaConf.update(self._tree, key, value, merge=False)
            except (OmegaConfBaseException, RecursionError) as error:
                self._errors[key] = _first_line(error)

    def resolve(self, key: str) -> Any:
        """Returns the value of `key` as plain Python.

        Raises:
          InterpolationError: it cannot be parsed, or refers to what does not exist or to itself.
        """
        if key in self._errors:
            raise InterpolationError(self._errors[key])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # `oc.deprecated` writes its own to the terminal.
                value = self._value(key)
        except (OmegaConfBaseException, RecursionError) as error:
            raise InterpolationError(_first_line(error)) from None
        if _levels(value) > MAX_LEVELS:
            raise InterpolationError(f"nested more than {MAX_LEVELS} levels deep")
        return value

    def _value(self, key: str) -> Any:
        section, _, name = key.rpartition(".")
        node = OmegaConf.select(self._tree, section) if section else self._tree
        value = node[name]
        if isinstance(value, Container):
            return OmegaConf.to_container(value, resolve=True, throw_on_missing=True)
        # OmegaConf returns an escaped `???` as a subclass of str, which YAML cannot write.
        return str(value) if isinstance(value, str) else value


def _levels(value: Any) -> int:
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_levels, below), default=0)


def _first_line(error: BaseException) -> str:
    line = next(iter(str(error).splitlines()), type(error).__name__)
    return line if len(line) <= _LONGEST_REASON else line[: _LONGEST_REASON - 3] + "..."
