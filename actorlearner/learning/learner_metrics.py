"""The learner's metrics file, and its TensorBoard curves of rates and staleness."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from tf_agents.agents.tf_agent import LossInfo

from actorlearner.learning.learner import DataStatistics
from actorlearner.process.ram import resident_bytes
from actorlearner.records.metrics import MetricsWriter, Rate
from actorlearner.records.run_directory import RunDirectory
from actorlearner.records.summaries import Summaries
from actorlearner.replay.status import BlockedTime, ReplayStatus


class LearnerMetrics:
    """Writes the learner's records at their interval."""

    def __init__(self, directory: RunDirectory, summaries: Summaries, train_step: int) -> None:
        """Starts the first rate.

        Args:
          directory: the run directory.
          summaries: the TensorBoard writer, which the training graph uses as well.
          train_step: the train step at which training begins; greater than 0 after a restore.
        """
        self._metrics = MetricsWriter(directory.metrics("learner"))
        self._summaries = summaries
        self._blocked = BlockedTime()
        self._rate = Rate(train_step)
        self._last_step = train_step

    def begin(self, train_step: int, replay: ReplayStatus) -> None:
        """Restarts the measurement of rates and fractions.

        Args:
          train_step: the last train step.
          replay: the status of replay.
        """
        self._rate = Rate(train_step)
        self._last_step = train_step
        self._blocked.update(replay)

    @property
    def due(self) -> bool:
        """Whether the next record is due."""
        return self._rate.due

    def write(
        self,
        train_step: int,
        loss: LossInfo,
        replay: ReplayStatus,
        data: DataStatistics,
        shares: Mapping[str, float],
    ) -> None:
        """Writes a record.

        Args:
          train_step: the last train step.
          loss: its losses, scalars.
          replay: the status of replay.
          data: the learner's measurements since the last record.
          shares: the shares of the time since then that "graph" and "publish" took.
        """
        rate = self._rate.update(train_step)
        elapsed_s = (train_step - self._last_step) / rate if rate else 0.0
        self._last_step = train_step
        waited = min(1.0, data.wait_s / elapsed_s) if elapsed_s else None
        blocked = self._blocked.update(replay)
        limiter = None if blocked is None or waited is None else min(waited, blocked.sampling)
        record = {
            "train_step": train_step,
            "train_steps_per_s": round(rate, 2),
            "env_steps": replay.inserts,
            "loss": float(np.mean(loss.loss)),
            **_losses(loss.extra),
            "samples_per_insert": replay.samples_per_insert,
            "data_wait_fraction": waited,
            # While the rate limiter blocks sampling, a wait for data is a wait for the limiter.
            "rate_limiter_wait_fraction": limiter,
            "publish_fraction": shares["publish"],
            "overhead_fraction": max(0.0, 1.0 - shares["graph"] - shares["publish"]),
            "staleness_mean": data.staleness_mean,
            "staleness_max": data.staleness_max,
            "memory_bytes": resident_bytes(),
        }
        if data.dropped is not None:
            record["dropped_sequences"] = data.dropped
        self._metrics.write(record)
        curves = {f"learner/{key}": value for key, value in record.items() if key != "train_step"}
        self._summaries.scalars(curves, train_step)
        self._summaries.flush()

    def flush(self) -> bool:
        """Writes the records that a full disk has delayed; returns whether everything is written."""
        written = [self._metrics.flush(), self._summaries.flush()]
        return all(written)


def _losses(extra: Any) -> dict[str, float]:
    """Returns the agent's own losses: the scalar fields of its LossInfo's extra."""
    fields = extra._asdict() if hasattr(extra, "_asdict") else {}
    return {name: float(value) for name, value in fields.items() if np.ndim(value) == 0}
