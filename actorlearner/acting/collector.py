"""The loop of a collect actor: act, step, write, report."""

import logging
from collections.abc import Callable

import numpy as np

from actorlearner.acting.collect_metrics import CollectMetrics
from actorlearner.callbacks.callback import Episode
from actorlearner.environments.batch import EnvironmentBatch, EpisodeStatistics
from actorlearner.process.heartbeat import beat
from actorlearner.process.stop import Stop
from actorlearner.process.waiting import WaitReport
from actorlearner.records.time_shares import TimeShares
from actorlearner.replay.blocked import BlockedTime
from actorlearner.replay.reverb_calls import UNREACHABLE
from actorlearner.replay.server_watch import ServerWatch
from actorlearner.replay.status import ReplayMonitor
from actorlearner.replay.transition import RANDOM_POLICY
from actorlearner.replay.writer import ReplayWriter
from actorlearner.variables.container import PolicyOrder
from actorlearner.variables.puller import VariablePuller

_log = logging.getLogger(__name__)

RANDOM = PolicyOrder(generation=-1, train_step=RANDOM_POLICY)
"""Stands for no policy: actions are drawn at random."""

_FLUSH_TIMEOUT_S = 0.5
_CLOSE_TIMEOUT_S = 2.0
_STATUS_TIMEOUT_S = 5
_BARRED_TIMEOUT_S = 1  # For a figure of a record: acting stands still meanwhile.


class Collector:
    """Takes env steps, writes the transitions and keeps the statistics."""

    def __init__(
        self,
        environments: EnvironmentBatch,
        writer: ReplayWriter,
        replay: ReplayMonitor,
        puller: VariablePuller,
        metrics: CollectMetrics,
        train_steps: int,
        stop: Stop,
        watch: ServerWatch | None = None,
        tell: Callable[[Episode], None] = lambda episode: None,
    ) -> None:
        """Begins at the environments' first observations.

        `watch` tells if the server is another run's; `tell` is called with each episode.
        """
        self._environments = environments
        self._writer = writer
        self._replay = replay
        self._puller = puller
        self._metrics = metrics
        self._train_steps = train_steps
        self._stop = stop
        self._watch = watch
        self._episodes = EpisodeStatistics(len(environments.first), ended=self._episode_ended)
        self._tell = tell
        self._env_steps = 0
        self._policy = RANDOM
        self._time = TimeShares("environment", "policy", "writing", "variables")
        self._barred = BlockedTime()

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to collect: a stop, or the policy of the last train step."""
        if self._watch is not None:
            self._watch.check()
        return self._stop.requested or self._puller.train_step >= self._train_steps

    def step(self, policy: Callable[..., object], order: PolicyOrder) -> None:
        """Takes one env step in each environment; blocks while the rate limiter holds inserts back.

        Args:
          policy: chooses the actions.
          order: of its variables.
        """
        self._time.spent("variables")  # All that is done between two env steps.
        action = policy(self._environments.observations, self._environments.first)
        self._time.spent("policy")
        steps = self._environments.step(action, order.train_step)
        self._time.spent("environment")
        self._writer.write(steps)
        self._time.spent("writing")
        self._env_steps += int(np.count_nonzero(steps.valid))
        self._policy = order
        self._episodes.add(steps)
        beat("env step", self._env_steps)
        self._time.spent()
        self._wait_for_replay()
        self._report()
        self._time.spent()

    def _episode_ended(self, environment: int, episode_return: float, length: int) -> None:
        self._tell(Episode(environment, episode_return, length, self._env_steps, self._policy.train_step))

    def _wait_for_replay(self) -> None:
        report = WaitReport()
        while not self._flush() and not self.ended:
            report.log(self._why_waiting)
            beat("waiting for replay to take transitions")
            self._report()

    def _flush(self) -> bool:
        flushed = self._writer.flush(_FLUSH_TIMEOUT_S)
        self._time.spent("writing")
        return flushed

    def _why_waiting(self) -> str:
        try:
            status = self._replay.status(_STATUS_TIMEOUT_S)
        except UNREACHABLE:
            return "the replay server, which does not answer; transitions are kept until it does"
        return (
            f"the rate limiter to let transitions in: the learner has sampled {status.samples:,} for "
            f"{status.inserts:,} inserted"
        )

    def _report(self, *, final: bool = False) -> None:
        age = self._puller.age_s if self._policy != RANDOM else None
        self._metrics.report(
            self._env_steps,
            self._episodes,
            self._policy,
            age,
            self._environments.faults,
            self._fractions,
            final=final,
        )

    def _fractions(self) -> dict[str, float | None]:
        """Of the time since the last record, by the keys that they have in it."""
        spent = self._time.take()
        # While the rate limiter bars inserts, a wait for the server's confirmation is a wait for the limiter.
        barred = self._inserts_barred()
        limiter = None if barred is None else min(spent["writing"], barred)
        spent["writing"] -= limiter or 0.0
        return {
            **{f"{part}_fraction": fraction for part, fraction in spent.items()},
            "rate_limiter_wait_fraction": limiter,
        }

    def _inserts_barred(self) -> float | None:
        """The fraction of the time since the last record; None where that cannot be told."""
        try:
            fractions = self._barred.update(self._replay.status(_BARRED_TIMEOUT_S))
        except UNREACHABLE:
            return None
        return None if fractions is None else fractions.inserts

    def close(self) -> None:
        """Writes what is pending, within a bound, and closes everything."""
        if not self._writer.close(_CLOSE_TIMEOUT_S):
            _log.info("the replay server did not take the last transitions in time; they are left out")
        self._report(final=True)
        self._environments.close()
