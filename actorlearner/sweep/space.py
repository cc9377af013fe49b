"""The search space: a YAML file with the values that each key may take."""

import collections
import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from actorlearner.config.document import Document, read_document
from actorlearner.config.problems import problem, show
from actorlearner.errors import ConfigurationError

if TYPE_CHECKING:
    import optuna

Check = Callable[[Sequence[str]], None]
"""Checks the configuration with these overrides; raises its problems as a ConfigurationError."""

_ALLOWED = "a list of values, or a mapping with low, high and, if wanted, log: true"
_BOUNDS = {"low", "high"}
_DIGITS = 6

Value = str | int | float
"""A drawn value: a choice as YAML text, or a number of a range."""


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A searched parameter: each trial draws one value for it, and gives it to one or several keys.

    Attributes:
      name: as the file has it; several keys are separated by commas.
      keys: the dotted keys of the configuration.
      source: where the file has it.
      choices: the values to draw from, each as YAML text; empty for a range.
      low: the smallest value of a range.
      high: the largest value of a range; an integer, like `low`, for integers only.
      log: whether a range is drawn from evenly in its logarithm.
    """

    name: str
    keys: tuple[str, ...]
    source: str
    choices: tuple[str, ...] = ()
    low: int | float = 0
    high: int | float = 0
    log: bool = False

    def suggest(self, trial: "optuna.Trial") -> Value:
        """Draws a value."""
        if self.choices:
            return trial.suggest_categorical(self.name, self.choices)
        if isinstance(self.low, int) and isinstance(self.high, int):
            return trial.suggest_int(self.name, self.low, self.high, log=self.log)
        return trial.suggest_float(self.name, self.low, self.high, log=self.log)

    def to_check(self) -> tuple[Value, ...]:
        """Returns every choice, or both ends of the range and, unless they are integers, a value between."""
        if self.choices:
            return self.choices
        if isinstance(self.low, int) and isinstance(self.high, int):
            return self.low, self.high
        return self.low, self.high, self.low + (self.high - self.low) / math.pi  # Not an integer.

    def text(self, value: Value) -> str:
        """Returns a drawn value as YAML, a number with six digits."""
        return f"{value:.{_DIGITS}g}" if isinstance(value, float) else str(value)

    def overrides(self, value: Value) -> list[str]:
        """Returns a drawn value of each key, as for `--set`."""
        return [f"{key}={self.text(value)}" for key in self.keys]


def read_space(path: str, check: Check) -> tuple[Parameter, ...]:
    """Reads a search space.

    Args:
      path: the YAML file: key to values.
      check: called with the overrides of one value at a time: see `Parameter.to_check`.

    Raises:
      ConfigurationError: with all problems of the file, and of the values in it.
    """
    document = read_document(path, flag="--space")
    problems = list(document.problems)
    if document.usable and not document.tree:
        problems.append(problem(document.name, "has no key to search", f"a mapping of keys to {_ALLOWED}"))
    parameters = [_parameter(name, value, document, problems) for name, value in document.tree.items()]
    space = tuple(parameter for parameter in parameters if parameter is not None)
    counts = collections.Counter(key for parameter in space for key in parameter.keys)
    for parameter in space:
        for key in parameter.keys:
            if counts[key] > 1:
                problems.append(problem(key, "is searched twice", "once", source=parameter.source))
        for value in parameter.to_check():
            problems += _problems(value, parameter, check)
    if problems:
        raise ConfigurationError(list(dict.fromkeys(problems)))
    return space


def _parameter(name: Any, value: Any, document: Document, problems: list[str]) -> Parameter | None:
    source = document.source((str(name),))
    keys = tuple(key.strip() for key in str(name).split(","))
    if "seed" in keys:  # The trial sets it for each of its runs.
        wrong = f"{show(value)} cannot be searched"
        problems.append(problem(str(name), wrong, "--seeds N for N runs in each trial", source=source))
        return None
    if isinstance(value, list) and value:
        return Parameter(str(name), keys, source, choices=tuple(json.dumps(each) for each in value))
    if isinstance(value, Mapping) and _is_range(value):
        return Parameter(str(name), keys, source, (), value["low"], value["high"], value.get("log", False))
    wrong = f"{show(value)} is no range of values to search"
    if isinstance(value, Mapping) and set(value) >= _BOUNDS:
        wrong += ": low has to be below high, and above 0 with log: true"
    problems.append(problem(str(name), wrong, _ALLOWED, source=source))
    return None


def _is_range(value: Mapping[Any, Any]) -> bool:
    if not _BOUNDS <= set(value) <= _BOUNDS | {"log"} or type(value.get("log", False)) is not bool:
        return False
    low, high = value["low"], value["high"]
    if any(type(end) not in (int, float) for end in (low, high)):
        return False
    return bool(low < high and (low > 0 or not value.get("log", False)))


def _problems(value: Value, parameter: Parameter, check: Check) -> Sequence[str]:
    """Returns the problems of a value, with the search space as their source."""
    try:
        check(parameter.overrides(value))
    except ConfigurationError as error:
        return [line.replace("(--set)", f"({parameter.source})") for line in error.problems]
    return ()
