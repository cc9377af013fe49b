"""The text and numbers of a report, read from the run directory without TensorFlow."""

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from actorlearner.config.problems import show
from actorlearner.config.resolved import declared_values, to_yaml
from actorlearner.config.schema import Config
from actorlearner.inspect.bottleneck.verdict import Bottleneck
from actorlearner.inspect.plot.runs import Run
from actorlearner.inspect.report.tables import (
    NOT_KNOWN,
    Figure,
    Incident,
    RoleRow,
    format_count,
    format_return,
    incidents_in,
    key_figures,
    role_rows,
)
from actorlearner.inspect.status.run_status import RunStatus, read_status
from actorlearner.records.manifest import created_at
from actorlearner.records.run_files import RunFiles

_MAX_INCIDENTS = 200
_MIN_PERCENT = 0.5


@dataclasses.dataclass(frozen=True)
class EvaluationRow:
    """An evaluation, formatted for the page."""

    train_step: str
    env_steps: str
    average: str
    deviation: str
    lowest: str
    highest: str


@dataclasses.dataclass(frozen=True)
class Contents:
    """The text and numbers of a report.

    Attributes:
      name: the name of the run directory.
      subject: the algorithm and the environment.
      state: running, finished or not running.
      figures: the key figures.
      waits: for each side of the run, the percentage of its time per phase.
      bottlenecks: the bottlenecks of the last minute.
      roles: one row each.
      incidents: the newest ones, oldest first.
      older_incidents: the number of older ones.
      evaluates: whether evaluation is on.
      evaluations: all evaluations.
      changed: keys of the configuration that differ from their defaults: key, value and default.
      config: the whole configuration, as YAML.
      origin: facts about the origin of the run, by name.
      versions: of packages, by name.
      made: the time of the report.
    """

    name: str
    subject: str
    state: str
    figures: list[Figure]
    waits: dict[str, dict[str, float]]
    bottlenecks: list[Bottleneck]
    roles: list[RoleRow]
    incidents: list[Incident]
    older_incidents: int
    evaluates: bool
    evaluations: list[EvaluationRow]
    changed: list[tuple[str, str, str]]
    config: str
    origin: dict[str, str]
    versions: dict[str, str]
    made: str


def read_contents(files: RunFiles, run: Run) -> Contents:
    """Reads the contents of a report; most are empty for a run that has just begun.

    Args:
      files: the files of the run.
      run: its evaluations and learner reports.

    Raises:
      ConfigurationError: the manifest cannot be read.
    """
    config = run.config
    status = read_status(files, config)
    first = files.directories[0]
    manifest = first.read_manifest()
    events = files.events()
    incidents = incidents_in(events, _began(manifest, events))
    environment = config.environment.name or config.environment.suite
    return Contents(
        name=first.path.name,
        subject=f"{config.agent.name} on {environment}, seed {config.seed}",
        state=status.state,
        figures=list(key_figures(files, status, run)),
        waits=_waits(status),
        bottlenecks=status.bottlenecks,
        roles=role_rows(files, status, events),
        incidents=incidents[-_MAX_INCIDENTS:],
        older_incidents=max(0, len(incidents) - _MAX_INCIDENTS),
        evaluates=status.evaluates,
        evaluations=_evaluations(run),
        changed=_changed(config),
        config=to_yaml(config),
        origin=_origin(files, manifest),
        versions={name: version or "not installed" for name, version in manifest.get("versions", {}).items()}
        | {"Python": str(manifest.get("python", NOT_KNOWN))},
        made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )


def _began(manifest: Mapping[str, Any], events: list[dict[str, Any]]) -> float:
    created = created_at(manifest)
    if created is None:
        return float(events[0]["time"]) if events else 0.0
    return created


def _waits(status: RunStatus) -> dict[str, dict[str, float]]:
    sides = {"collect actors": status.waits.actors, "learner": status.waits.learner}
    return {side: _percent(parts) for side, parts in sides.items() if parts is not None}


def _percent(parts: Mapping[str, float]) -> dict[str, float]:
    """Converts fractions to percentages, and adds the remainder as `other`."""
    percent = {part: 100.0 * fraction for part, fraction in parts.items()}
    left = 100.0 - sum(percent.values())
    return percent | {"other": left} if left >= _MIN_PERCENT else percent


def _evaluations(run: Run) -> list[EvaluationRow]:
    evaluated = run.evaluations
    columns = zip(evaluated.train_steps, evaluated.env_steps, evaluated.returns, strict=True)
    return [
        EvaluationRow(
            format_count(train_step),
            format_count(env_steps),
            *map(format_return, (returns.mean(), returns.std(), returns.min(), returns.max())),
        )
        for train_step, env_steps, returns in columns
    ]


def _changed(config: Config) -> list[tuple[str, str, str]]:
    defaults = declared_values(dataclasses.replace(Config(), agent=type(config.agent)()))
    return [
        (key, _value(value), _value(defaults[key]))
        for key, value in declared_values(config).items()
        if value != defaults[key]
    ]


def _value(value: Any) -> str:
    return value if isinstance(value, str) and value else show(value)


def _origin(files: RunFiles, manifest: Mapping[str, Any]) -> dict[str, str]:
    command = manifest.get("command")
    facts = {
        "run directory": ", ".join(str(directory.path) for directory in files.directories),
        "run id": manifest.get("run_id"),
        "begun": manifest.get("created"),
        "host": manifest.get("host"),
        "command": " ".join(map(str, command)) if isinstance(command, list) else None,
        "fingerprint of the configuration": manifest.get("fingerprint"),
    }
    return {what: str(value) for what, value in facts.items() if value}
