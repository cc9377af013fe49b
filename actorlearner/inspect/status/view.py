"""The status of a run as lines that fit the terminal."""

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rich.text import Text

from actorlearner.inspect.bottleneck.verdict import verdict_lines
from actorlearner.inspect.status.run_status import RUNNING, SILENT, STARTING, RoleStatus, RunStatus, role_of
from actorlearner.records.formatting import decimals, duration, rate_text

_LABEL = 11


class Row(NamedTuple):
    """A row: its label (empty for the label of the row before), its text, and its style in rich."""

    label: str
    text: str
    style: str = ""


def rendered(rows: Iterator[Row], width: int) -> Text:
    """Returns the rows as lines of at most `width` columns; longer text is wrapped and indented."""
    lines = []
    for row in rows:
        indent = len(row.text) - len(row.text.lstrip())
        wrapped = textwrap.wrap(
            row.text, max(20, width - _LABEL), subsequent_indent=" " * (indent + 2), drop_whitespace=True
        )
        for number, part in enumerate(wrapped or [""]):
            label = row.label if number == 0 else ""
            lines.append(Text.assemble((f"{label:<{_LABEL}}", "bold"), (part, row.style)))
    return Text("\n").join(lines)


def run_rows(status: RunStatus) -> Iterator[Row]:
    """Yields the rows of a run directory."""
    style = "green" if status.state == RUNNING else ""
    yield Row("run", f"{Path(status.run_dir).name}, {status.state}", style)
    yield Row("progress", _progress(status.train_step, status.train_steps, status.time_left_s))
    if status.state == RUNNING:
        yield Row("rates", _rates(status.train_steps_per_s, status.env_steps_per_s))
    if status.replay:
        yield from _replay_rows(status.replay)
    if status.learner:
        yield Row("learning", _learning(status.learner))
    yield Row("returns", _returns(status))
    if (status.last_evaluation or {}).get("average_info"):
        yield Row("info", _info(status))
    if status.faults or status.restarts:
        yield Row(
            "incidents", f"{status.faults:,} faults of environments, {status.restarts:,} restarts", "yellow"
        )
    label = "roles"
    for role in status.roles:
        yield Row(label, *_role(role, status.actors))
        label = ""
    label = "bottleneck"
    for line in verdict_lines(status.bottlenecks) or ["not known: the last minute has too few metrics"]:
        yield Row(label, line, "" if line.startswith(" ") or not status.bottlenecks else "yellow")
        label = ""


def server_rows(status: Any) -> Iterator[Row]:
    """Yields the rows of a replay server; `status` is a ServerStatus."""
    yield Row("run", f"{status.run_id}, served at {status.replay_address}", "green")
    yield Row("progress", _progress(status.train_step, status.train_steps, status.time_left_s))
    if status.train_steps_per_s is not None:
        yield Row("rates", _rates(status.train_steps_per_s, status.env_steps_per_s))
    yield from _replay_rows(status.replay)
    since = "" if status.variables_new else "at least "
    newest = f"train step {_number(status.train_step)} first seen {since}"
    age = f"{newest}{status.variables_age_s:.0f} s ago" if status.versions else "none yet"
    yield Row("policies", f"{status.versions:,} published, {age}; {status.evaluations_waiting} to evaluate")
    if status.replay["capacity"] is None or not status.versions:
        return  # Actors may wait for a policy, and the server cannot know it.
    who = {None: "neither side waits for long", "learner": "the learner's side: the actors wait for it"}
    yield Row("bottleneck", who.get(status.held_back_by, "the actors' side: the learner waits for it"))


def _progress(train_step: int | None, train_steps: int, left_s: float | None) -> str:
    percent = 100.0 * (train_step or 0) / train_steps
    left = f", {duration(left_s)} left" if left_s else ""
    return f"train step {_number(train_step)} of {train_steps:,} ({percent:.0f} %){left}"


def _rates(train: float | None, env: float | None) -> str:
    return f"{rate_text(train)} train steps/s, {rate_text(env)} env steps/s"


def _replay_rows(replay: Mapping[str, Any]) -> Iterator[Row]:
    capacity, wanted = replay["capacity"], replay["samples_per_insert_wanted"]
    limiter = f"{replay['samples_per_insert']:,.1f} samples per insert"
    if capacity is not None:  # None where experience is consumed once.
        percent = 100.0 * replay["size"] / capacity
        yield Row("replay", f"{replay['size']:,} of {capacity:,} transitions ({percent:.0f} %)")
        limiter += " (no limit)" if wanted is None else f" ({wanted:,.1f} wanted)"
    inserts, sampling = replay.get("inserts_barred_fraction"), replay.get("sampling_barred_fraction")
    if inserts is not None and sampling is not None:
        limiter += f"; blocks inserts {100 * inserts:.0f} %, sampling {100 * sampling:.0f} % of the time"
    yield Row("limiter", limiter)


def _learning(learner: Mapping[str, Any]) -> str:
    mean, highest = learner.get("staleness_mean"), learner.get("staleness_max")
    loss = learner.get("loss")
    shown = "-" if loss is None else f"{loss:.4g}"
    if mean is None or highest is None:
        return f"loss {shown}"
    return f"loss {shown}, staleness {mean:,.0f} train steps on average, {highest:,} at most"


def _returns(status: RunStatus) -> str:
    parts = [] if status.evaluates else ["evaluation is off"]
    parts += [
        f"{name} {_return(evaluation['average_return'])} (train step {evaluation['train_step']:,})"
        for name, evaluation in (("last", status.last_evaluation), ("best", status.best_evaluation))
        if evaluation is not None and evaluation["average_return"] is not None
    ]
    if status.collect_return is not None:
        parts.append(f"collecting {_return(status.collect_return)}")
    return ", ".join(parts) or "none yet"


def _info(status: RunStatus) -> str:
    info = (status.last_evaluation or {})["average_info"]
    values = {name: "-" if value is None else _return(value) for name, value in info.items()}
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _role(role: RoleStatus, actors: list[dict[str, Any]]) -> tuple[str, str]:
    """Returns the line of a role and its style."""
    facts = [
        f"no heartbeat for {role.age_s:.0f} s after: {role.doing}" if role.state == SILENT else role.doing
    ]
    for actor in actors:
        if role.name == role_of(actor):
            facts.append(f"{rate_text(actor.get('env_steps_per_s'))} env steps/s")
    if role.state != SILENT:
        facts.append(f"{role.age_s:.0f} s ago")
    if role.up_s is not None:
        facts.append(f"up {duration(role.up_s)}")
    if role.memory_bytes is not None:
        facts.append(f"{role.memory_bytes / 2**20:,.0f} MiB")
    if role.restarts:
        facts.append(f"restarts {role.restarts}")
    styles = {SILENT: "bold red", STARTING: "yellow"}
    return f"{role.name}: {', '.join(facts)}", styles.get(role.state, "")


def _return(value: float) -> str:
    return f"{value:,.{decimals(value)}f}"


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
