"""What is known of a run's best policy: a file beside its SavedModel, read without TensorFlow."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from actorlearner.records.digits import decimals
from actorlearner.records.run_directory import CONFIG_IN_POLICY
from actorlearner.records.seal import write_atomically

FACTS = "best.json"
"""The file's name, in the folder of the policy's configuration."""


@dataclasses.dataclass(frozen=True)
class Returns:
    """Episodes of one policy.

    Attributes:
      returns: undiscounted, one of each episode.
      lengths: in env steps.
    """

    returns: Sequence[float]
    lengths: Sequence[int]

    @property
    def average(self) -> float:
        """Mean return."""
        return float(np.mean(self.returns))

    @property
    def deviation(self) -> float:
        """Standard deviation of the returns, that of a population."""
        return float(np.std(self.returns))

    def record(self) -> dict[str, object]:
        """As JSON, with what is derived."""
        return {
            "returns": list(self.returns),
            "lengths": list(self.lengths),
            "average_return": self.average,
            "return_deviation": self.deviation,
            "average_episode_length": float(np.mean(self.lengths)),
        }


@dataclasses.dataclass(frozen=True)
class BestFacts:
    """A policy that was the best by its average return.

    Attributes:
      train_step: after which these were its weights.
      chosen: the evaluation that it was chosen for; as the best of many, it flatters.
      fresh: episodes on other seeds, played at the end of the run; None before.
    """

    train_step: int
    chosen: Returns
    fresh: Returns | None = None

    @property
    def order(self) -> tuple[float, int]:
        """Greater for a better policy; of two that are as good, for the newer one."""
        return self.chosen.average, self.train_step

    def text(self) -> str:
        """The file's content."""
        fresh = None if self.fresh is None else self.fresh.record()
        return json.dumps({"train_step": self.train_step, **self.chosen.record(), "fresh": fresh}) + "\n"

    def describe(self) -> str:
        """Says how good it is."""
        chosen = f"{self.chosen.average:,.{decimals(self.chosen.average, least=1)}f}"
        if self.fresh is None:
            return f"{chosen} when it was chosen, train step {self.train_step:,}"
        average, deviation = self.fresh.average, self.fresh.deviation
        digits = decimals(average, deviation, least=1)
        return (
            f"{average:,.{digits}f} ± {deviation:,.{digits}f} on {len(self.fresh.returns)} fresh "
            f"episodes ({chosen} when it was chosen), train step {self.train_step:,}"
        )


def facts_path(policy: Path) -> Path:
    """Where the facts of a policy's directory are."""
    return policy / CONFIG_IN_POLICY.parent / FACTS


def read_best(policy: Path) -> BestFacts | None:
    """Reads the facts of a policy's directory; None where there are none, or not as written."""
    try:
        record = json.loads(facts_path(policy).read_text(encoding="utf-8"))
        fresh = record["fresh"] and Returns(record["fresh"]["returns"], record["fresh"]["lengths"])
        chosen = Returns(record["returns"], record["lengths"])
        return BestFacts(int(record["train_step"]), chosen, fresh)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_best(policy: Path, facts: BestFacts) -> None:
    """Replaces the facts of a policy's directory.

    Raises:
      OSError: they cannot be written.
    """
    write_atomically(facts_path(policy), facts.text())
