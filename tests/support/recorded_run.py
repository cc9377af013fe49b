"""Run directories with known metrics, in the form that real runs leave."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from actorlearner.agents.configuration import load_config
from actorlearner.config.schema import Config
from actorlearner.records.run_directory import RunDirectory
from tests.support.processes import REPOSITORY

BEGAN = 1.8e9
"""When all of them were started, in Unix seconds."""

Record = dict[str, Any]


def recorded_run(
    path: Path,
    *overrides: str,
    evaluations: Iterable[Record] = (),
    training: Iterable[Record] = (),
    replay: Iterable[Record] = (),
    config: str = "sac_pendulum",
) -> tuple[RunDirectory, Config]:
    """Writes a run directory; the `time` of records counts from BEGAN."""
    loaded = load_config(str(REPOSITORY / "configs" / f"{config}.yaml"), overrides)
    directory = RunDirectory(path)
    directory.prepare(loaded)
    manifest = json.loads(directory.manifest.read_text())
    manifest["created"] = datetime.fromtimestamp(BEGAN, UTC).isoformat()
    directory.manifest.write_text(json.dumps(manifest))
    directory.metrics("eval").parent.mkdir()
    for name, records in (("eval", evaluations), ("learner", training), ("replay", replay)):
        lines = [json.dumps({**record, "time": BEGAN + record["time"]}) + "\n" for record in records]
        directory.metrics(name).write_text("".join(lines))
    return directory, loaded


def evaluation(
    time: float, train_step: int, returns: Sequence[float], env_steps: int | None = None
) -> Record:
    """A record of the eval actor; by default there was one train step in each env step."""
    steps = train_step if env_steps is None else env_steps
    return {
        "time": time,
        "train_step": train_step,
        "env_steps": steps,
        "returns": list(returns),
        "average_return": sum(returns) / len(returns) if returns else None,
    }


def report(
    time: float, train_step: int, env_steps: int | None = None, staleness: float | None = 5.0
) -> Record:
    """A record of the learner."""
    return {
        "time": time,
        "train_step": train_step,
        "env_steps": train_step if env_steps is None else env_steps,
        "samples_per_insert": 64.0,
        "staleness_mean": staleness,
        "staleness_max": None if staleness is None else 2 * staleness,
    }


def trained_run(
    path: Path, *overrides: str, gain: float = 1.0, config: str = "sac_pendulum"
) -> tuple[RunDirectory, Config]:
    """A run of 100 s, 1,000 train steps, and returns of one and two times `gain` for each of these."""
    return recorded_run(
        path,
        *overrides,
        evaluations=[evaluation(t, 10 * t, [gain * 10 * t, gain * 20 * t]) for t in (0, 50, 100)],
        training=[report(t, 10 * t) for t in range(2, 101, 2)],
        replay=[{"time": t} for t in range(0, 101, 2)],
        config=config,
    )
