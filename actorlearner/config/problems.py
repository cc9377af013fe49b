"""The lines that report refused settings: the key, the value, its source and what is allowed."""

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

_MAX_LENGTH = 100
_MEANT = "; did you mean "
_ALLOWED = "; allowed: "

Sources = Mapping[str, str]
"""Where the value of a key comes from: dotted key to `FILE:LINE`, `--set` or `default`."""


def show(value: Any) -> str:
    """Returns `value` as one line of JSON, where the text "256" and the number 256 look different."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):  # JSON knows fewer kinds of keys than YAML.
        text = repr(value)
    return text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 3] + "..."


def closest(name: str, candidates: Iterable[str], count: int = 1) -> list[str]:
    """Returns the candidates that have all words of `name`, then similar ones, ignoring case; perhaps none.

    Candidates that end with the name come first: `target_update_tau` for `tau`.
    """
    by_lower_case = {candidate.lower(): candidate for candidate in candidates}
    name = name.lower()
    words = _words(name)
    close = [each for each in by_lower_case if words <= _words(each)]
    close.sort(key=lambda each: not each.endswith(name.rpartition(".")[2]))
    close += difflib.get_close_matches(name, by_lower_case, n=count)
    return [by_lower_case[match] for match in dict.fromkeys(close)][:count]


def _words(name: str) -> set[str]:
    return set(re.split("[._]", name))


def with_source(line: str, sources: Sources) -> str:
    """Returns a line of `problem` with the source of its key, for code that knows only the values.

    Args:
      line: begins with a key, or with an entry of a key's mapping, as in collect.actor_kwargs.port; it is
        returned unchanged if `sources` does not have this key.
      sources: where the value of each key comes from.
    """
    key = ".".join(line.partition(": ")[0].split(".")[:2])
    if key not in sources:
        return line
    # The last occurrence, because a value or an error message may contain the same words.
    advice = max(line.rfind(_MEANT), line.rfind(_ALLOWED))
    end = advice if advice >= 0 else len(line)
    return f"{line[:end]} ({sources[key]}){line[end:]}"


def problem(key: str, wrong: str, allowed: str = "", meant: Iterable[str] = (), source: str = "") -> str:
    """Returns one problem as one line.

    Args:
      key: the dotted key; or the file or flag, if the problem is not about a key.
      wrong: what is wrong, with the value.
      allowed: what would be accepted.
      meant: what the user may have meant instead.
      source: where the value comes from; empty if it is clear from `key`, or if a caller adds it by
        `with_source`.
    """
    line = f"{key}: {wrong}"
    if source:
        line += f" ({source})"
    hint = " or ".join(meant)
    if hint:
        line += f"{_MEANT}{hint}?"
    if allowed:
        line += f" allowed: {allowed}" if hint else f"{_ALLOWED}{allowed}"
    return " ".join(line.splitlines())


def unknown_agent(name: object, names: Iterable[str]) -> str:
    """Returns the problem of a value of `agent.name` that names no algorithm; `names` are the known ones."""
    allowed = f"{', '.join(names)}, or module:Builder of your own"
    if name == "":
        return problem("agent.name", "is not given", allowed)
    if not isinstance(name, str):
        return problem("agent.name", f"{show(name)} is of the wrong type", allowed)
    return problem("agent.name", f"unknown agent {show(name)}", allowed, closest(name, names))
