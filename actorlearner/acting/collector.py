"""The loop of a collect actor: act, step, write, report."""

import logging
import time
from collections.abc import Callable

import numpy as np

from actorlearner.acting.collect_metrics import CollectMetrics
from actorlearner.acting.policy_function import PolicyFunction, RandomPolicy, ScriptedPolicy
from actorlearner.callbacks.callback import Episode
from actorlearner.config.schema import Config
from actorlearner.environments.batch import EnvironmentBatch
from actorlearner.environments.environment import EnvSteps
from actorlearner.process.heartbeat import beat, patience_after
from actorlearner.process.stop import Stop
from actorlearner.process.waiting import WaitReport
from actorlearner.replay.connection import ReplayServer
from actorlearner.replay.reverb_calls import UNREACHABLE
from actorlearner.replay.watched_servers import WatchedServer
from actorlearner.variables.container import PolicyOrder
from actorlearner.variables.puller import VariablePuller

_log = logging.getLogger(__name__)

ActingPolicy = PolicyFunction | RandomPolicy | ScriptedPolicy

_FLUSH_TIMEOUT_S = 0.5
_CLOSE_TIMEOUT_S = 2.0
_STATUS_TIMEOUT_S = 5


class Collector:
    """Takes env steps and writes the transitions; closes its environments and its writer."""

    def __init__(
        self,
        config: Config,
        environments: EnvironmentBatch,
        replay: ReplayServer,
        puller: VariablePuller,
        metrics: CollectMetrics,
        stop: Stop,
        watched: WatchedServer | None = None,
        notify: Callable[[Episode], None] = lambda episode: None,
    ) -> None:
        """Starts at the environments' first observations.

        Args:
          config: the experiment.
          environments: the environments to act in.
          replay: the replay server to write to.
          puller: receives the policies; collecting ends when the policy of the last train step arrives.
          metrics: measures the env steps and the time.
          stop: ends collecting.
          watched: checks that `replay` still serves this run; None if `puller` polls the same server.
          notify: called with each complete episode.
        """
        self._environments = environments
        self._replay = replay
        self._writer = replay.layout.writer(replay.client, len(environments.first))
        self._in_sequences = replay.layout.experience.length is not None
        self._reward_clipping = config.collect.reward_clipping
        self._puller = puller
        self._metrics = metrics
        self._time = metrics.time
        self._train_steps = config.learn.train_steps
        self._stop = stop
        self._watched = watched
        self._notify = notify
        self._slowest_s: float | None = None

    @property
    def ended(self) -> bool:
        """True once a stop is requested or the policy of the last train step has arrived.

        Raises:
          RunError: a server of another run has replaced this run's.
        """
        if self._watched is not None:
            self._watched.check()
        return self._stop.requested or self._puller.train_step >= self._train_steps

    def step(self, policy: ActingPolicy, order: PolicyOrder) -> None:
        """Takes one env step in each environment; blocks while the rate limiter blocks inserts.

        Args:
          policy: chooses the actions.
          order: the generation and train step of its variables.

        Raises:
          RunError: an environment failed too often in a row, or a server of another run has replaced this
            run's.
        """
        self._time.spent("variables")  # Everything since the last env step.
        action = policy(self._environments.observations, self._environments.first)
        self._time.spent("policy")
        beat("env step", self._metrics.env_steps, patience_after(self._slowest_s))
        began = time.monotonic()
        steps = self._environments.step(action, order.train_step)
        self._slowest_s = max(self._slowest_s or 0.0, time.monotonic() - began)
        if self._in_sequences:
            generation = np.full(len(steps.reward), order.generation, np.int64)
            steps = steps._replace(
                policy_generation=generation, policy_info=policy.info, policy_state=policy.state
            )
        self._time.spent("environment")
        self._writer.write(self._clipped(steps))
        self._time.spent("writing")
        for episode in self._metrics.add(steps, order):
            self._notify(episode)
        self._time.spent()
        self._wait_for_replay()
        self._metrics.report()
        self._time.spent()

    def wait_for_policy(self, seconds: float) -> None:
        """Waits for `seconds` or until a stop, and counts the time as waiting for the learner.

        An actor of an on-policy algorithm waits here once it has collected its share with the newest policy.
        """
        self._time.spent("variables")
        beat("waiting for the next policy")
        self._stop.wait(seconds)
        self._time.spent("learner")
        self._metrics.report()
        self._time.spent()

    def _clipped(self, steps: EnvSteps) -> EnvSteps:
        limit = self._reward_clipping
        return steps if limit is None else steps._replace(reward=np.clip(steps.reward, -limit, limit))

    def _wait_for_replay(self) -> None:
        report = WaitReport()
        while not self._flush() and not self.ended:
            report.log(self._why_waiting)
            beat("waiting for replay to accept transitions")
            self._metrics.report()

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
            f"the rate limiter to accept transitions: the learner has sampled {status.samples:,} for "
            f"{status.inserts:,} inserted"
        )

    def close(self) -> None:
        """Flushes pending transitions for at most two seconds and closes the writer and the environments."""
        if not self._writer.close(_CLOSE_TIMEOUT_S):
            _log.info("the replay server did not accept the last transitions in time; they are discarded")
        self._metrics.report(final=True)
        self._environments.close()
