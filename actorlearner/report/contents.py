"""What a report says of a run, gathered from its directory as text and numbers, without TensorFlow."""

import collections
import dataclasses
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from actorlearner.bottleneck.verdict import Bottleneck
from actorlearner.config.problems import show
from actorlearner.config.resolved import declared_values, to_yaml
from actorlearner.config.schema import Config
from actorlearner.errors import one_line
from actorlearner.events import DIED, FAILED, STARTED, TROUBLE, WARNED, read_events
from actorlearner.local.view import duration
from actorlearner.metrics import newest_records
from actorlearner.playing.best_facts import read_best
from actorlearner.plot.runs import Run
from actorlearner.run_directory import RunDirectory
from actorlearner.status.run_status import RoleStatus, RunLooker, RunStatus

_MOST_TROUBLES = 200
_LEAST_PERCENT = 0.5
_LARGE_RETURN = 100.0  # Of which hundredths say nothing.
_NOT_KNOWN = "-"


@dataclasses.dataclass(frozen=True)
class Figure:
    """One of the figures that a report begins with.

    Attributes:
      name: what it is.
      value: with its unit.
      note: more about it, or empty.
    """

    name: str
    value: str
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Trouble:
    """Something that befell a role.

    Attributes:
      when: in hours, minutes and seconds since the run began.
      role: whom.
      event: see `actorlearner.events`.
      text: what.
    """

    when: str
    role: str
    event: str
    text: str


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


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """An evaluation, as text."""

    train_step: str
    env_steps: str
    average: str
    deviation: str
    lowest: str
    highest: str


@dataclasses.dataclass(frozen=True)
class Contents:
    """Everything a report says in words and numbers.

    Attributes:
      name: of the run directory.
      subject: the algorithm and the environment.
      state: running, finished or not running.
      figures: what is most important.
      waits: by the side of the run, what its time went to, in percent.
      bottlenecks: what holds it back.
      roles: one line each.
      troubles: the newest of them, oldest first.
      troubles_left_out: how many older ones there are.
      evaluations: all.
      changed: keys of the configuration that differ from their defaults: key, value and default.
      config: all of it, as YAML.
      origin: where the run comes from, by what it is.
      versions: of packages.
      made: when the report was made.
    """

    name: str
    subject: str
    state: str
    figures: list[Figure]
    waits: dict[str, dict[str, float]]
    bottlenecks: list[Bottleneck]
    roles: list[RoleRow]
    troubles: list[Trouble]
    troubles_left_out: int
    evaluations: list[Evaluation]
    changed: list[tuple[str, str, str]]
    config: str
    origin: dict[str, str]
    versions: dict[str, str]
    made: str


def gather(directory: RunDirectory, config: Config, run: Run) -> Contents:
    """Gathers what there is; a run that has just begun leaves most of it empty.

    Args:
      directory: of the run.
      config: what runs there.
      run: its metrics.

    Raises:
      ConfigurationError: the manifest cannot be read.
    """
    status = RunLooker(directory.path).look()
    manifest = _manifest(directory)
    events = read_events(directory.events)
    troubles = [event for event in events if event["event"] in TROUBLE]
    began = _began(manifest, events)
    environment = config.environment.name or config.environment.suite
    return Contents(
        name=directory.path.name,
        subject=f"{config.agent.name} on {environment}, seed {config.seed}",
        state=status.state,
        figures=_figures(directory, status, run),
        waits=_waits(status),
        bottlenecks=status.bottlenecks,
        roles=_roles(directory, status, events),
        troubles=[_trouble(event, began) for event in troubles[-_MOST_TROUBLES:]],
        troubles_left_out=max(0, len(troubles) - _MOST_TROUBLES),
        evaluations=_evaluations(run),
        changed=_changed(config),
        config=to_yaml(config),
        origin=_origin(directory, manifest),
        versions={name: version or "not installed" for name, version in manifest.get("versions", {}).items()}
        | {"Python": str(manifest.get("python", _NOT_KNOWN))},
        made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )


def _manifest(directory: RunDirectory) -> dict[str, Any]:
    try:
        return {**json.loads(directory.manifest.read_bytes())}
    except (OSError, TypeError, ValueError) as error:
        return {"command": [f"the manifest cannot be read: {one_line(error)}"]}


def _began(manifest: Mapping[str, Any], events: list[dict[str, Any]]) -> float:
    try:
        return datetime.fromisoformat(manifest["created"]).timestamp()
    except (KeyError, TypeError, ValueError):
        return float(events[0]["time"]) if events else 0.0


def _figures(directory: RunDirectory, status: RunStatus, run: Run) -> list[Figure]:
    best, last, training = read_best(directory.best_policy), status.last_evaluation, run.training
    seconds = float(training.times[-1]) if len(training.times) else 0.0
    figures = []
    if best is not None and best.fresh is not None:
        figures.append(
            Figure(
                "best policy",
                f"{_return(best.fresh.average)} ± {_return(best.fresh.deviation)}",
                f"{len(best.fresh.returns)} fresh episodes, train step {best.train_step:,}; "
                f"{_return(best.chosen.average)} when it was chosen",
            )
        )
    elif best is not None:
        figures.append(
            Figure(
                "best evaluation",
                f"{_return(best.chosen.average)} ± {_return(best.chosen.deviation)}",
                f"{len(best.chosen.returns)} episodes, train step {best.train_step:,}",
            )
        )
    if last is not None and last["average_return"] is not None:
        figures.append(
            Figure("last evaluation", _return(last["average_return"]), f"train step {last['train_step']:,}")
        )
    train_step = status.train_step or 0
    figures.append(
        Figure(
            "train steps",
            f"{train_step:,}",
            f"{100 * train_step / status.train_steps:.0f} % of {status.train_steps:,}",
        )
    )
    figures.append(Figure("env steps", f"{status.env_steps or 0:,}", "of all collect actors"))
    if seconds > 0:
        env_steps = status.env_steps or 0
        figures.append(Figure("time running", duration(seconds)))
        figures.append(
            Figure(
                "mean rate",
                f"{train_step / seconds:,.0f} train steps/s",
                f"{env_steps / seconds:,.0f} env steps/s",
            )
        )
    staleness = status.learner.get("staleness_mean")
    if staleness is not None:
        figures.append(
            Figure(
                "staleness", f"{staleness:,.0f} train steps", f"{status.learner['staleness_max']:,} at most"
            )
        )
    figures.append(Figure("faults of environments", f"{status.faults:,}"))
    return figures


def _waits(status: RunStatus) -> dict[str, dict[str, float]]:
    sides = {"collect actors": status.waits.actors, "learner": status.waits.learner}
    return {side: _percent(parts) for side, parts in sides.items() if parts is not None}


def _percent(parts: Mapping[str, float]) -> dict[str, float]:
    """Adds what the parts leave of the whole."""
    percent = {part: 100.0 * fraction for part, fraction in parts.items()}
    left = 100.0 - sum(percent.values())
    return percent | {"other": left} if left >= _LEAST_PERCENT else percent


def _roles(directory: RunDirectory, status: RunStatus, events: list[dict[str, Any]]) -> list[RoleRow]:
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for event in events:
        counts[event["role"]][event["event"]] += 1
    alive: dict[str, RoleStatus] = {role.name: role for role in status.roles}
    named = {actor["name"].replace("collect-", "collect-actor-"): actor for actor in status.actors}
    evaluated = newest_records(directory.metrics("eval"))
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
        starts=f"{counted[STARTED]:,}" if counted[STARTED] else _NOT_KNOWN,
        deaths=counted[DIED] + counted[FAILED],
        warnings=counted[WARNED],
        rate=rates[0] if rates else _NOT_KNOWN,
        memory=_NOT_KNOWN if memory is None else f"{memory / 2**20:,.0f} MiB",
    )


def _trouble(event: Mapping[str, Any], began: float) -> Trouble:
    when = duration(max(0.0, float(event["time"]) - began))
    return Trouble(when, str(event["role"]), str(event["event"]), str(event["text"]))


def _evaluations(run: Run) -> list[Evaluation]:
    all_of_them = run.evaluations
    return [
        Evaluation(
            _counted(train_step),
            _counted(env_steps),
            *(_return(value) for value in (returns.mean(), returns.std(), returns.min(), returns.max())),
        )
        for train_step, env_steps, returns in zip(
            all_of_them.train_steps, all_of_them.env_steps, all_of_them.returns, strict=True
        )
    ]


def _return(value: float) -> str:
    return f"{value:,.1f}" if abs(value) >= _LARGE_RETURN else f"{value:,.2f}"


def _counted(value: float) -> str:
    return f"{value:,.0f}" if value == value else _NOT_KNOWN


def _changed(config: Config) -> list[tuple[str, str, str]]:
    defaults = declared_values(dataclasses.replace(Config(), agent=type(config.agent)()))
    return [
        (key, _value(value), _value(defaults[key]))
        for key, value in declared_values(config).items()
        if value != defaults[key]
    ]


def _value(value: Any) -> str:
    return value if isinstance(value, str) and value else show(value)


def _origin(directory: RunDirectory, manifest: Mapping[str, Any]) -> dict[str, str]:
    command = manifest.get("command")
    told = {
        "run directory": str(directory.path),
        "run id": manifest.get("run_id"),
        "begun": manifest.get("created"),
        "host": manifest.get("host"),
        "command": " ".join(map(str, command)) if isinstance(command, list) else None,
        "fingerprint of the configuration": manifest.get("fingerprint"),
    }
    return {what: str(value) for what, value in told.items() if value}
