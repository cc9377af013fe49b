"""Keeps the best policy of a run by average return as a SavedModel."""

import logging
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tf_agents.policies import greedy_policy

from actorlearner.acting.best_record import FILE_NAME, BestRecord, EpisodeStatistics, read_best, write_best
from actorlearner.agents.make import AgentParts
from actorlearner.config.schema import Config
from actorlearner.process.heartbeat import LONG_PATIENCE_S, beat
from actorlearner.records.disk import Outage, is_full
from actorlearner.records.metrics import MetricsWriter, read_records
from actorlearner.records.policy_directory import (
    PolicyDirectory,
    fresh_path,
    replace_directory,
    restore_directory,
)
from actorlearner.records.run_directory import RunDirectory
from actorlearner.variables.container import PolicyVariables

_log = logging.getLogger(__name__)


class BestPolicy:
    """The best policy in `policies/best`, with its record.

    A new best policy is written to a second directory before its evaluation is recorded, and moved to
    `policies/best` afterwards. If the eval actor is killed in between, the next one repeats the evaluation,
    or moves the policy if the evaluation was recorded. While the disk is full, the policy is kept in memory.
    """

    def __init__(
        self,
        directory: RunDirectory,
        parts: AgentParts,
        config: Config,
        update: Callable[[PolicyVariables], None],
    ) -> None:
        """Completes or removes what a killed eval actor left behind.

        Args:
          directory: the run directory.
          parts: the agent whose policy is saved.
          config: the run's configuration.
          update: assigns policy variables to the variables of `parts`.
        """
        self._path = directory.best_policy
        self._metrics = directory.metrics("best")
        self._parts = parts
        self._config = config
        self._update = update
        self._outage = Outage("best policies", self._path)
        self._directory: PolicyDirectory | None = None
        self._unsaved: tuple[PolicyVariables, BestRecord] | None = None  # Better than the saved one.
        self._prepared = False  # Whether `_unsaved` is written beside `policies/best`.
        self._writer: MetricsWriter | None = None
        self._recover(read_records(directory.metrics("eval")))

    @property
    def record(self) -> BestRecord | None:
        """The record of the saved best policy, if any."""
        return read_best(self._path)

    def consider(self, version: PolicyVariables, played: EpisodeStatistics) -> None:
        """Writes an evaluated policy beside `policies/best` if it is the best so far; takes seconds.

        Overwrites the variables of the agent. A full or failing disk is logged.
        """
        record = BestRecord(version.train_step, played)
        best = self._unsaved[1] if self._unsaved else self.record
        if best is None or record.chosen.average >= best.chosen.average:
            self._unsaved = version, record
        self.prepare()

    def prepare(self) -> None:
        """Writes the policy that is kept in memory, if any, beside `policies/best`."""
        if self._unsaved is None:
            return
        version, record = self._unsaved
        started = time.monotonic()
        beat("saving the best policy", patience_s=LONG_PATIENCE_S)
        self._update(version)
        directory = self._directory = self._directory or self._trace()
        try:
            directory.prepare({FILE_NAME: record.text()})
        except (OSError, tf.errors.OpError) as error:
            self._outage.failed(error)
            directory.remove_leftovers()
            return
        self._prepared = True
        _log.info("best policy: %s; written in %.1f s", record.describe(), time.monotonic() - started)

    def replace(self) -> None:
        """Moves the prepared policy, if any, to `policies/best`. A failing disk is logged."""
        if self._directory is None or not self._prepared:
            return
        self._prepared = False
        try:
            self._directory.replace()
        except OSError as error:
            self._outage.failed(error)
            return
        self._unsaved = None
        self._outage.recovered()

    def record_fresh(self, record: BestRecord) -> bool:
        """Records the episodes of the saved policy on fresh seeds; call it again after a full disk.

        If the eval actor is killed in the middle, the next one plays the episodes again and repeats the line
        in the metrics file.

        Args:
          record: of that policy, with its fresh episodes.

        Returns:
          False if the disk is full. A failing disk is logged.
        """
        assert record.fresh is not None
        try:
            if self._writer is None:
                self._writer = MetricsWriter(self._metrics)
                self._writer.write({"train_step": record.train_step, **record.fresh.record()})
            if not self._writer.flush():
                return False
            write_best(self._path, record)
        except OSError as error:
            self._outage.failed(error)
            return not is_full(error)
        self._outage.recovered()
        return True

    def _trace(self) -> PolicyDirectory:
        policy = greedy_policy.GreedyPolicy(self._parts.agent.policy)
        return PolicyDirectory(self._path, policy, self._parts.train_step, self._config)

    def _recover(self, evaluations: Sequence[Mapping[str, Any]]) -> None:
        fresh = fresh_path(self._path)
        try:
            restore_directory(self._path)
            prepared, saved = read_best(fresh), self.record
            # After an exchange of the directories, `fresh` holds the replaced policy until it is removed.
            if prepared is not None and (saved is None or prepared.order > saved.order):
                recorded = [(record["train_step"], record["returns"]) for record in evaluations]
                if (prepared.train_step, prepared.chosen.returns) in recorded:
                    replace_directory(self._path)
        except OSError as error:
            self._outage.failed(error)
        shutil.rmtree(fresh, ignore_errors=True)
