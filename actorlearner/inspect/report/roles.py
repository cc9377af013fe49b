"""The table of a run's roles in its report."""

import collections
import dataclasses
from collections.abc import Mapping
from typing import Any

from actorlearner.inspect.report.numbers import NOT_KNOWN
from actorlearner.inspect.status.run_status import RoleStatus, RunStatus
from actorlearner.records.events import DIED, FAILED, STARTED, WARNED
from actorlearner.records.metrics import newest_records
from actorlearner.records.run_files import RunFiles


@dataclasses.dataclass(frozen=True)
class RoleRow:
    """A role's line in the table of roles, as text.

    Attributes:
      name: with its index where there are several.
      starts: how many processes of it were started; a dash where nobody has written that down.
      deaths: how many of them were killed or failed.
      warnings: how often it warned.
      rate: its newest, in its own steps.
      memory: resident, as last reported.
    """

    name: str
    starts: str
    deaths: int
    warnings: int
    rate: str
    memory: str


def role_rows(files: RunFiles, status: RunStatus, events: list[dict[str, Any]]) -> list[RoleRow]:
    """The roles of which there is a sign of life, a record or an event."""
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for event in events:
        counts[event["role"]][event["event"]] += 1
    alive: dict[str, RoleStatus] = {role.name: role for role in status.roles}
    named = {actor["name"].replace("collect-", "collect-actor-"): actor for actor in status.actors}
    evaluated = newest_records(files.metrics("eval"))
    known = {"learner": status.learner, "replay-server": status.replay, **named}
    known["eval-actor"] = evaluated[-1] if evaluated else {}
    names = sorted(
        {*counts, *alive, *(name for name, record in known.items() if record)} - {"local"}, key=_order
    )
    return [_role(name, counts[name], known.get(name, {}), alive.get(name)) for name in names]


def _order(name: str) -> tuple[str, int, str]:
    """Of ten actors, the last comes last."""
    return name.rstrip("0123456789"), len(name), name


def _role(
    name: str, counted: Mapping[str, int], record: Mapping[str, Any], alive: RoleStatus | None
) -> RoleRow:
    rates = [
        f"{record[key]:,.0f} {key.removesuffix('_per_s').replace('_', ' ')}/s"
        for key in ("train_steps_per_s", "env_steps_per_s")
        if record.get(key) is not None
    ]
    memory = record.get("memory_bytes") or (alive.memory_bytes if alive is not None else None)
    return RoleRow(
        name,
        starts=f"{counted[STARTED]:,}" if counted[STARTED] else NOT_KNOWN,
        deaths=counted[DIED] + counted[FAILED],
        warnings=counted[WARNED],
        rate=rates[0] if rates else NOT_KNOWN,
        memory=NOT_KNOWN if memory is None else f"{memory / 2**20:,.0f} MiB",
    )
