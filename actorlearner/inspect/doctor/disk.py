"""Room for what a run writes."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from actorlearner.inspect.doctor.result import Result, fail, ok
from actorlearner.inspect.doctor.subject import Subject

_SAVED_MODELS = 3
_GRAPHS_BYTES = 2 * 2**20
"""What a SavedModel takes beside its variables."""

_SLOTS = 2
"""Numbers that Adam keeps for each that it trains."""


def check_disk(subject: Subject) -> Result:
    """Whether the run directory can be written, and has room for the checkpoints of a full replay."""
    from actorlearner.replay.item_memory import size

    folder = _nearest(subject.run_dir)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"actorlearner")
    except OSError as error:
        return fail(f"{folder} cannot be written to, {error.strerror}: choose another --run_dir")
    replay, learner = _needed(subject)
    free, held = shutil.disk_usage(folder).free, _held(subject.run_dir / "checkpoints")
    found = f"checkpoints: replay {size(replay)}, learner {size(learner)}; {size(free)} free"
    if replay + learner > free + held:
        return fail(f"{found} in {folder}: lower replay.capacity, or choose another --run_dir")
    return ok(found)


def _nearest(path: Path) -> Path:
    """The directory itself, or the closest around it that exists."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _needed(subject: Subject) -> tuple[int, int]:
    """Bytes of replay's checkpoints and of what the learner writes, with those that are being written."""
    from actorlearner.learning import checkpoint
    from actorlearner.replay import checkpoints, footprint

    one = footprint.checkpoint_bytes(subject.config.replay.capacity, subject.layout)
    agent = _bytes(subject.agent.agent.variables) * (1 + _SLOTS) * (checkpoint.KEPT + 1)
    policies = (_bytes(subject.agent.policy_variables) + _GRAPHS_BYTES) * _SAVED_MODELS
    return one * (checkpoints.KEPT + 1), agent + policies


def _bytes(variables: Sequence[Any]) -> int:
    return sum(variable.shape.num_elements() * variable.dtype.size for variable in variables)


def _held(checkpoints: Path) -> int:
    """Bytes of checkpoints that are there already and will make room for others."""
    return sum(path.stat().st_size for path in checkpoints.rglob("*") if path.is_file())
