"""How a refused setting is reported: one line with the key, the value, its source and what is allowed."""

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import Any

DEFAULT_SOURCE = "default"
"""The source of a key that neither the file nor `--set` gives."""

_LONGEST_VALUE = 100

Sources = Mapping[str, str]
"""Where the value of a key comes from: dotted key to `FILE:LINE`, `--set` or `default`."""


def show(value: Any) -> str:
    """`value` as one line of JSON, so that the text "256" and the number 256 look different."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):  # JSON knows fewer kinds of keys than YAML.
        text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 3] + "..."


def closest(name: str, candidates: Iterable[str], count: int = 1) -> list[str]:
    """The candidates most like `name`, best first, whatever their case; none if nothing is close."""
    by_lower_case = {candidate.lower(): candidate for candidate in candidates}
    close = difflib.get_close_matches(name.lower(), by_lower_case, n=count)
    return [by_lower_case[match] for match in close]


def with_source(line: str, sources: Sources) -> str:
    """Adds where a value comes from to a `problem` that was found where only the values are known.

    Args:
      line: the problem; of something else than a key, it stays as it is.
      sources: of every key.
    """
    source = sources.get(line.partition(": ")[0])
    if source is None:
        return line
    wrong, allowed, rest = line.partition("; allowed: ")
    return f"{wrong} ({source}){allowed}{rest}"


def problem(key: str, wrong: str, source: str, allowed: str = "", meant: Iterable[str] = ()) -> str:
    """Puts one problem into one line.

    Args:
      key: the dotted key, or the file or flag where no key is to blame.
      wrong: what is wrong, with the value.
      source: where the value comes from; empty if `key` says so already.
      allowed: what would be accepted.
      meant: what the user may have meant instead.
    """
    line = f"{key}: {wrong}"
    if source:
        line += f" ({source})"
    hint = " or ".join(meant)
    if hint:
        line += f"; did you mean {hint}?"
    if allowed:
        line += f" allowed: {allowed}" if hint else f"; allowed: {allowed}"
    return " ".join(line.splitlines())
