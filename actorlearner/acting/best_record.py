"""The record of a run's best policy: a file in its SavedModel's directory, read without TensorFlow."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from actorlearner.records.disk import write_atomically
from actorlearner.records.formatting import decimals
from actorlearner.records.run_directory import CONFIG_IN_POLICY

FILE_NAME = "best.json"
"""Lies in the same folder as the policy's configuration."""


@dataclasses.dataclass(frozen=True)
class EpisodeStatistics:
    """The returns and lengths of one policy's episodes.

    Attributes:
      returns: undiscounted, one per episode.
      lengths: env steps, one per episode.
    """

    returns: Sequence[float]
    lengths: Sequence[int]

    @property
    def average(self) -> float:
        """Mean return."""
        return float(np.mean(self.returns))

    @property
    def deviation(self) -> float:
        """Population standard deviation of the returns."""
        return float(np.std(self.returns))

    def record(self) -> dict[str, object]:
        """Returns a JSON object with the episodes and their statistics."""
        return {
            "returns": list(self.returns),
            "lengths": list(self.lengths),
            "average_return": self.average,
            "return_deviation": self.deviation,
            "average_episode_length": float(np.mean(self.lengths)),
        }


@dataclasses.dataclass(frozen=True)
class BestRecord:
    """The best policy by average return.

    Attributes:
      train_step: the train step of its weights.
      chosen: the evaluation that it was chosen for; biased upwards, as the best of many.
      fresh: episodes on other seeds, played at the end of the run; None until then.
    """

    train_step: int
    chosen: EpisodeStatistics
    fresh: EpisodeStatistics | None = None

    @property
    def order(self) -> tuple[float, int]:
        """Sort key: the better policy is greater, then the newer one."""
        return self.chosen.average, self.train_step

    def text(self) -> str:
        """Returns the file's content."""
        fresh = None if self.fresh is None else self.fresh.record()
        return json.dumps({"train_step": self.train_step, **self.chosen.record(), "fresh": fresh}) + "\n"

    def describe(self) -> str:
        """Describes the policy's returns in one line."""
        chosen = f"{self.chosen.average:,.{decimals(self.chosen.average, least=1)}f}"
        if self.fresh is None:
            return f"{chosen} when it was chosen, train step {self.train_step:,}"
        average, deviation = self.fresh.average, self.fresh.deviation
        digits = decimals(average, deviation, least=1)
        return (
            f"{average:,.{digits}f} ± {deviation:,.{digits}f} on {len(self.fresh.returns)} fresh "
            f"episodes ({chosen} when it was chosen), train step {self.train_step:,}"
        )


def _record_path(policy: Path) -> Path:
    return policy / CONFIG_IN_POLICY.parent / FILE_NAME


def read_best(policy: Path) -> BestRecord | None:
    """Reads the record in a policy's directory; returns None if it is missing or damaged."""
    try:
        record = json.loads(_record_path(policy).read_text(encoding="utf-8"))
        fresh = record["fresh"] and EpisodeStatistics(record["fresh"]["returns"], record["fresh"]["lengths"])
        chosen = EpisodeStatistics(record["returns"], record["lengths"])
        return BestRecord(int(record["train_step"]), chosen, fresh)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_best(policy: Path, record: BestRecord) -> None:
    """Replaces the record in a policy's directory.

    Raises:
      OSError: it cannot be written.
    """
    write_atomically(_record_path(policy), record.text())
