"""What a report says of a run, gathered from its directory as text and numbers, without TensorFlow."""

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from actorlearner.config.problems import show
from actorlearner.config.resolved import declared_values, to_yaml
from actorlearner.config.schema import Config
from actorlearner.inspect.bottleneck.verdict import Bottleneck
from actorlearner.inspect.plot.runs import Run
from actorlearner.inspect.report.figures import Figure, key_figures
from actorlearner.inspect.report.incidents import Trouble, troubles_in
from actorlearner.inspect.report.numbers import NOT_KNOWN, count_in_words, return_in_words
from actorlearner.inspect.report.roles import RoleRow, role_rows
from actorlearner.inspect.status.run_status import RunStatus, look
from actorlearner.records.run_files import RunFiles

_MOST_TROUBLES = 200
_LEAST_PERCENT = 0.5


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


def gather(files: RunFiles, run: Run) -> Contents:
    """Gathers what there is; a run that has just begun leaves most of it empty.

    Args:
      files: of the run.
      run: what it measured.

    Raises:
      ConfigurationError: the manifest cannot be read.
    """
    config = run.config
    status = look(files, config)
    first = files.directories[0]
    manifest = first.read_manifest()
    events = files.events()
    troubles = troubles_in(events, _began(manifest, events))
    environment = config.environment.name or config.environment.suite
    return Contents(
        name=first.path.name,
        subject=f"{config.agent.name} on {environment}, seed {config.seed}",
        state=status.state,
        figures=list(key_figures(files, status, run)),
        waits=_waits(status),
        bottlenecks=status.bottlenecks,
        roles=role_rows(files, status, events),
        troubles=troubles[-_MOST_TROUBLES:],
        troubles_left_out=max(0, len(troubles) - _MOST_TROUBLES),
        evaluations=_evaluations(run),
        changed=_changed(config),
        config=to_yaml(config),
        origin=_origin(files, manifest),
        versions={name: version or "not installed" for name, version in manifest.get("versions", {}).items()}
        | {"Python": str(manifest.get("python", NOT_KNOWN))},
        made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )


def _began(manifest: Mapping[str, Any], events: list[dict[str, Any]]) -> float:
    try:
        return datetime.fromisoformat(manifest["created"]).timestamp()
    except (KeyError, TypeError, ValueError):
        return float(events[0]["time"]) if events else 0.0


def _waits(status: RunStatus) -> dict[str, dict[str, float]]:
    sides = {"collect actors": status.waits.actors, "learner": status.waits.learner}
    return {side: _percent(parts) for side, parts in sides.items() if parts is not None}


def _percent(parts: Mapping[str, float]) -> dict[str, float]:
    """Adds what the parts leave of the whole."""
    percent = {part: 100.0 * fraction for part, fraction in parts.items()}
    left = 100.0 - sum(percent.values())
    return percent | {"other": left} if left >= _LEAST_PERCENT else percent


def _evaluations(run: Run) -> list[Evaluation]:
    all_of_them = run.evaluations
    return [
        Evaluation(
            count_in_words(train_step),
            count_in_words(env_steps),
            *(
                return_in_words(value)
                for value in (returns.mean(), returns.std(), returns.min(), returns.max())
            ),
        )
        for train_step, env_steps, returns in zip(
            all_of_them.train_steps, all_of_them.env_steps, all_of_them.returns, strict=True
        )
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
    told = {
        "run directory": ", ".join(str(directory.path) for directory in files.directories),
        "run id": manifest.get("run_id"),
        "begun": manifest.get("created"),
        "host": manifest.get("host"),
        "command": " ".join(map(str, command)) if isinstance(command, list) else None,
        "fingerprint of the configuration": manifest.get("fingerprint"),
    }
    return {what: str(value) for what, value in told.items() if value}
