"""Keeps the best policy of a run, by its average return, as a SavedModel."""

import logging
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tf_agents.policies import greedy_policy

from actorlearner.acting.best_facts import FACTS, BestFacts, Returns, read_best, write_best
from actorlearner.agents.make import AgentParts
from actorlearner.config.schema import Config
from actorlearner.process.heartbeat import LONG_PATIENCE_S, beat
from actorlearner.records.disk import Outage, is_full
from actorlearner.records.metrics import MetricsWriter, read_records
from actorlearner.records.policy_directory import PolicyDirectory, fresh_path, stale_path
from actorlearner.records.replace_directory import replace_directory, restore_directory
from actorlearner.records.run_directory import RunDirectory
from actorlearner.variables.container import PolicyVariables

_log = logging.getLogger(__name__)


class BestPolicy:
    """The best policy, `policies/best`, with its facts.

    A policy is prepared before its evaluation is recorded, and put into its place after that: an eval actor
    that is killed in between leaves either an evaluation that is made again, or a policy that the next one
    puts into its place. One that a full disk keeps out waits in memory for the next evaluation.
    """

    def __init__(
        self,
        directory: RunDirectory,
        parts: AgentParts,
        config: Config,
        update: Callable[[PolicyVariables], None],
    ) -> None:
        """Puts in order what an eval actor before this one has left.

        Args:
          directory: of the run.
          parts: the agent whose policy is saved.
          config: of the run.
          update: assigns a version to the variables of `parts`.
        """
        self._path = directory.best_policy
        self._metrics = directory.metrics("best")
        self._parts = parts
        self._config = config
        self._update = update
        self._outage = Outage("best policies", self._path)
        self._directory: PolicyDirectory | None = None
        self._waiting: tuple[PolicyVariables, BestFacts] | None = None
        self._prepared = False
        self._writer: MetricsWriter | None = None
        self._recover(read_records(directory.metrics("eval")))

    @property
    def facts(self) -> BestFacts | None:
        """Of the best policy that is saved."""
        return read_best(self._path)

    def consider(self, version: PolicyVariables, played: Returns) -> None:
        """Prepares a policy that was evaluated if it is the best so far; it takes seconds.

        The variables of the agent may be others afterwards. A disk that is full or fails is logged.
        """
        facts, saved = BestFacts(version.train_step, played), self.facts
        best = self._waiting[1] if self._waiting else saved
        if best is None or facts.chosen.average >= best.chosen.average:
            self._waiting = version, facts
        self.prepare()

    def prepare(self) -> None:
        """Prepares what waits, if anything does; see `consider`."""
        if self._waiting is None:
            return
        version, facts = self._waiting
        started = time.monotonic()
        beat("saving the best policy", patience_s=LONG_PATIENCE_S)
        self._update(version)
        directory = self._directory = self._directory or self._trace()
        try:
            directory.prepare({FACTS: facts.text()})
        except (OSError, tf.errors.OpError) as error:
            self._outage.failed(error)
            directory.remove_leftovers()
            return
        self._prepared = True
        _log.info("best policy: %s; written in %.1f s", facts.describe(), time.monotonic() - started)

    def replace(self) -> None:
        """Puts what was prepared into its place. A disk that fails is logged."""
        if self._directory is None or not self._prepared:
            return
        self._prepared = False
        try:
            self._directory.replace()
        except OSError as error:
            self._outage.failed(error)
            return
        self._waiting = None
        self._outage.recovered()

    def record_fresh(self, facts: BestFacts) -> bool:
        """Records what the saved policy did on fresh seeds.

        Args:
          facts: of that policy, with the fresh episodes.

        Returns:
          Whether there was room on the disk. One that fails is logged.
        """
        assert facts.fresh is not None
        try:
            if self._writer is None:
                self._writer = MetricsWriter(self._metrics)
                record = {"train_step": facts.train_step, **facts.fresh.record()}
                recorded = [{**record, "time": 0} for record in read_records(self._metrics)]
                if {**record, "time": 0} not in recorded:  # By one that was killed before it wrote the facts.
                    self._writer.write(record)
            if not self._writer.flush():
                return False
            write_best(self._path, facts)
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
            restore_directory(self._path, stale_path(self._path))
            prepared, saved = read_best(fresh), self.facts
            # What was replaced lies there, too, for a moment.
            if prepared is not None and (saved is None or prepared.order > saved.order):
                recorded = [(record["train_step"], record["returns"]) for record in evaluations]
                if (prepared.train_step, prepared.chosen.returns) in recorded:
                    replace_directory(fresh, self._path, stale_path(self._path))
        except OSError as error:
            self._outage.failed(error)
        shutil.rmtree(fresh, ignore_errors=True)
