"""What befell a run, in its report."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from actorlearner.records.duration import duration
from actorlearner.records.events import INCIDENTS


@dataclasses.dataclass(frozen=True)
class Trouble:
    """Something that befell a role.

    Attributes:
      when: in hours, minutes and seconds since the run began.
      role: whom.
      event: see `actorlearner.records.events`.
      text: what.
    """

    when: str
    role: str
    event: str
    text: str


def troubles_in(events: Iterable[Mapping[str, Any]], began: float) -> list[Trouble]:
    """The troubles among the events of a run that began at that Unix time."""
    return [
        Trouble(
            duration(max(0.0, float(event["time"]) - began)),
            *(str(event[key]) for key in ("role", "event", "text")),
        )
        for event in events
        if event["event"] in INCIDENTS
    ]
