"""The learner's records: losses, rates, shares of time and staleness, as metrics and TensorBoard curves."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from tf_agents.agents.tf_agent import LossInfo

from actorlearner.learning.training_graph import TrainingGraph
from actorlearner.process.ram import resident_bytes
from actorlearner.records.metrics import MetricsWriter, Rate
from actorlearner.records.run_directory import RunDirectory
from actorlearner.records.summaries import Summaries
from actorlearner.records.time_shares import TimeShares
from actorlearner.replay.status import BlockedTime, ReplayStatus


class LearnerMetrics:
    """Writes a record when one is due, after a call of the training graph."""

    def __init__(
        self,
        directory: RunDirectory,
        summaries: Summaries,
        graph: TrainingGraph,
        replay_status: Callable[[], ReplayStatus],
    ) -> None:
        """Starts the clock, and the first rate at the current train step.

        Args:
          directory: the run directory.
          summaries: the TensorBoard writer, which the training graph uses as well.
          graph: its measurements are recorded.
          replay_status: returns the status of replay; may block for seconds.
        """
        self._metrics = MetricsWriter(directory.metrics("learner"))
        self._summaries = summaries
        self._graph = graph
        self._replay_status = replay_status
        self._time = TimeShares("graph", "publish")
        self._blocked = BlockedTime()
        self._last_step = int(graph.train_step.numpy())
        self._rate = Rate(self._last_step)
        self._loss: LossInfo | None = None
        self._written = -1
        # At a stop the main thread writes, while the training thread may be writing as well.
        self._lock = threading.Lock()

    def spent(self, phase: str | None = None) -> None:
        """Attributes the time since the last call to "graph", to "publish" or to neither."""
        self._time.spent(phase)

    def add(self, train_step: int, loss: LossInfo, *, last: bool) -> None:
        """Adds a call of the training graph.

        Args:
          train_step: its last train step.
          loss: the losses of this train step, scalars.
          last: whether this is the last train step of the run.
        """
        first, self._loss = self._loss is None, loss
        if first or last or self._rate.due:
            self.write(train_step)
        if first:  # The first call also optimises the graph: rates exclude it.
            self.restart_rates()

    def write(self, train_step: int) -> None:
        """Writes a record of a train step, unless it is written already; no-op before the first call ends.

        After a stop, the train step may be one of a call that has not ended: the losses are then those of the
        call before.
        """
        with self._lock:
            if self._loss is None or train_step == self._written:
                return
            self._written = train_step
            record = self._record(train_step, self._loss)
            self._metrics.write(record)
            curves = {f"learner/{key}": value for key, value in record.items() if key != "train_step"}
            self._summaries.scalars(curves, train_step)
            self._summaries.flush()

    def restart_rates(self) -> None:
        """Starts the rates and shares of time again, without the time since the last record."""
        self._last_step = int(self._graph.train_step.numpy())
        self._rate = Rate(self._last_step)
        self._blocked.update(self._replay_status())
        self._time.take()

    def flush(self) -> bool:
        """Writes the records that a full disk has delayed; returns whether everything is written."""
        written = [self._metrics.flush(), self._summaries.flush()]
        return all(written)

    def _record(self, train_step: int, loss: LossInfo) -> dict[str, Any]:
        data, shares, replay = self._graph.take_statistics(), self._time.take(), self._replay_status()
        rate = self._rate.update(train_step)
        elapsed_s = (train_step - self._last_step) / rate if rate else 0.0
        self._last_step = train_step
        waited = min(1.0, data.wait_s / elapsed_s) if elapsed_s else None
        blocked = self._blocked.update(replay)
        limiter = None if blocked is None or waited is None else min(waited, blocked.sampling)
        record = {
            "train_step": train_step,
            "train_steps_per_s": rate,
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
        return record


def _losses(extra: Any) -> dict[str, float]:
    """Returns the agent's own losses: the scalar fields of its LossInfo's extra."""
    fields = extra._asdict() if hasattr(extra, "_asdict") else {}
    return {name: float(value) for name, value in fields.items() if np.ndim(value) == 0}
