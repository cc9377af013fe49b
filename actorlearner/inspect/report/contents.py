"""The text and numbers of a report, read from the run directory without TensorFlow."""

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from actorlearner.config.problems import show
from actorlearner.config.resolved import declared_values, to_yaml
from actorlearner.config.schema import Config
from actorlearner.inspect.plot.runs import RecordedRun
from actorlearner.inspect.report.tables import (
    NOT_KNOWN,
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


def read_contents(files: RunFiles, run: RecordedRun) -> dict[str, Any]:
    """Returns what page.html.j2 shows; most of it is empty for a run that has just begun.

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
    return {
        "name": first.path.name,
        "subject": f"{config.agent.name} on {environment}, seed {config.seed}",
        "state": status.state,
        "figures": list(key_figures(files, status, run)),
        "waits": _waits(status),
        "bottlenecks": status.bottlenecks,
        "roles": role_rows(files, status, events),
        "incidents": incidents[-_MAX_INCIDENTS:],
        "older_incidents": max(0, len(incidents) - _MAX_INCIDENTS),
        "evaluates": status.evaluates,
        "evaluations": _evaluations(run),
        "changed": _changed(config),
        "config": to_yaml(config),
        "origin": _origin(files, manifest),
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    }


def _began(manifest: Mapping[str, Any], events: list[dict[str, Any]]) -> float:
    created = created_at(manifest)
    if created is None:
        return float(events[0]["time"]) if events else 0.0
    return created


def _waits(status: RunStatus) -> dict[str, dict[str, float]]:
    """Returns each side's percentages of time by phase, with the remainder as `other`."""
    waits: dict[str, dict[str, float]] = {}
    sides = {"collect actors": status.waits.actors, "learner": status.waits.learner}
    for side, fractions in sides.items():
        if fractions is not None:
            waits[side] = {phase: 100.0 * fraction for phase, fraction in fractions.items()}
            left = 100.0 - sum(waits[side].values())
            if left >= _MIN_PERCENT:
                waits[side]["other"] = left
    return waits


def _evaluations(run: RecordedRun) -> list[list[str]]:
    """Returns a row for each evaluation: train step, env steps, mean, deviation, lowest, highest return."""
    evaluated = run.evaluations
    rows = zip(evaluated.train_steps, evaluated.env_steps, evaluated.returns, strict=True)
    return [
        [
            *map(format_count, (train_step, env_steps)),
            *map(format_return, (returns.mean(), returns.std(), returns.min(), returns.max())),
        ]
        for train_step, env_steps, returns in rows
    ]


def _changed(config: Config) -> list[tuple[str, str, str]]:
    """Returns the keys that differ from their defaults, with value and default."""
    defaults = declared_values(dataclasses.replace(Config(), agent=type(config.agent)()))
    return [
        (key, _value(value), _value(defaults[key]))
        for key, value in declared_values(config).items()
        if value != defaults[key]
    ]


def _value(value: Any) -> str:
    return value if isinstance(value, str) and value else show(value)


def _origin(files: RunFiles, manifest: Mapping[str, Any]) -> dict[str, str]:
    """Returns the known facts about the origin of the run, and the versions of packages."""
    command = manifest.get("command")
    facts = {
        "run directory": ", ".join(str(directory.path) for directory in files.directories),
        "run id": manifest.get("run_id"),
        "begun": manifest.get("created"),
        "host": manifest.get("host"),
        "command": " ".join(map(str, command)) if isinstance(command, list) else None,
        "fingerprint of the configuration": manifest.get("fingerprint"),
    }
    known = {what: str(value) for what, value in facts.items() if value}
    versions = {name: version or "not installed" for name, version in manifest.get("versions", {}).items()}
    return known | versions | {"Python": str(manifest.get("python", NOT_KNOWN))}
