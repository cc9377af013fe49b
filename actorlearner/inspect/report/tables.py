"""The key figures, roles and incidents of a report, as text."""

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from actorlearner.acting.best_record import BestRecord, read_best
from actorlearner.inspect.plot.runs import RecordedRun
from actorlearner.inspect.status.run_status import RoleStatus, RunStatus, role_of
from actorlearner.process.role_names import EVAL_ACTOR, LEARNER, REPLAY_SERVER
from actorlearner.records.events import DIED, FAILED, INCIDENTS, STARTED, WARNED
from actorlearner.records.formatting import decimals, duration
from actorlearner.records.metrics import newest_records
from actorlearner.records.run_files import RunFiles

NOT_KNOWN = "-"

_LARGE_RETURN = 100.0  # Larger returns are written without hundredths.


def format_return(value: float) -> str:
    """Formats a return with its significant digits."""
    return f"{value:,.{1 if abs(value) >= _LARGE_RETURN else decimals(value)}f}"


def format_count(value: float) -> str:
    """Formats a number of steps; NaN is an unknown one."""
    return f"{value:,.0f}" if value == value else NOT_KNOWN


@dataclasses.dataclass(frozen=True)
class Figure:
    """A key figure at the top of a report.

    Attributes:
      name: the quantity.
      value: the value with its unit.
      note: a remark, or empty.
    """

    name: str
    value: str
    note: str = ""


def key_figures(files: RunFiles, status: RunStatus, run: RecordedRun) -> Iterator[Figure]:
    """Yields the known key figures, the most important first."""
    best = read_best(files.of_eval_actor.best_policy)
    if best is not None:
        yield _best(best)
    last = status.last_evaluation
    if last is not None and last["average_return"] is not None:
        average = format_return(last["average_return"])
        yield Figure("last evaluation", average, f"train step {last['train_step']:,}")
    yield from _progress(status, run)
    staleness = status.learner.get("staleness_mean")
    if staleness is not None:
        at_most = f"{status.learner['staleness_max']:,} at most"
        yield Figure("staleness", f"{staleness:,.0f} train steps", at_most)
    yield Figure("faults of environments", f"{status.faults:,}")


def _best(best: BestRecord) -> Figure:
    chosen, fresh = best.chosen, best.fresh
    name, played = ("best evaluation", chosen) if fresh is None else ("best policy", fresh)
    episodes = f"{len(played.returns)} {'' if fresh is None else 'fresh '}episodes"
    note = f"{episodes}, train step {best.train_step:,}"
    if fresh is not None:
        note += f"; {format_return(chosen.average)} when it was chosen"
    digits = decimals(played.average, played.deviation, least=1)
    return Figure(name, f"{played.average:,.{digits}f} ± {played.deviation:,.{digits}f}", note)


def _progress(status: RunStatus, run: RecordedRun) -> Iterator[Figure]:
    train_step, env_steps = status.train_step or 0, status.env_steps or 0  # None before the first record.
    share = f"{100 * train_step / status.train_steps:.0f} % of {status.train_steps:,}"
    yield Figure("train steps", f"{train_step:,}", share)
    yield Figure("env steps", f"{env_steps:,}", "of all collect actors")
    seconds = float(run.training.seconds[-1]) if len(run.training.seconds) else 0.0
    if seconds > 0:
        yield Figure("time running", duration(seconds))
        rates = f"{train_step / seconds:,.0f} train steps/s", f"{env_steps / seconds:,.0f} env steps/s"
        yield Figure("mean rate", *rates)


@dataclasses.dataclass(frozen=True)
class RoleRow:
    """A row of the table of roles, as text.

    Attributes:
      name: the role, with its index if there are several.
      starts: the number of started processes; a dash if it was not recorded.
      deaths: the number of processes that were killed or failed.
      warnings: the number of warnings.
      rate: the newest rate, in the role's own steps.
      memory: resident memory, as last reported.
    """

    name: str
    starts: str
    deaths: int
    warnings: int
    rate: str
    memory: str


def role_rows(files: RunFiles, status: RunStatus, events: list[dict[str, Any]]) -> list[RoleRow]:
    """Returns the row of each role that has a heartbeat, a record or an event."""
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for event in events:
        counts[event["role"]][event["event"]] += 1
    alive: dict[str, RoleStatus] = {role.name: role for role in status.roles}
    named = {role_of(actor): actor for actor in status.actors}
    evaluated = newest_records(files.metrics("eval"))
    known = {LEARNER: status.learner, REPLAY_SERVER: status.replay, **named}
    known[EVAL_ACTOR] = evaluated[-1] if evaluated else {}
    names = sorted(
        {*counts, *alive, *(name for name, record in known.items() if record)} - {"local"}, key=_order
    )
    return [_role(name, counts[name], known.get(name, {}), alive.get(name)) for name in names]


def _order(name: str) -> tuple[str, int, str]:
    """Sorts actors by their number."""
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


@dataclasses.dataclass(frozen=True)
class Incident:
    """A warning, a failure or a death of a role.

    Attributes:
      when: hours, minutes and seconds since the run began.
      role: the name of the role.
      event: its name in `actorlearner.records.events`.
      text: the description.
    """

    when: str
    role: str
    event: str
    text: str


def incidents_in(events: Iterable[Mapping[str, Any]], began: float) -> list[Incident]:
    """Returns the incidents among the events of a run that began at a Unix time."""
    return [
        Incident(
            duration(max(0.0, float(event["time"]) - began)),
            *(str(event[key]) for key in ("role", "event", "text")),
        )
        for event in events
        if event["event"] in INCIDENTS
    ]
