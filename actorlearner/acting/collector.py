"""The loop of a collect actor: act, step, write, report."""

import dataclasses
import logging
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from actorlearner.acting.collect_metrics import CollectMetrics
from actorlearner.acting.policy_function import PolicyFunction, RandomPolicy, ScriptedPolicy
from actorlearner.acting.recent_episodes import RecentEpisodes
from actorlearner.agents.experience import RANDOM_TRAIN_STEP
from actorlearner.callbacks.callback import Episode
from actorlearner.environments.batch import EnvironmentBatch
from actorlearner.environments.environment import EnvSteps
from actorlearner.process.heartbeat import beat, patience_after
from actorlearner.process.stop import Stop
from actorlearner.process.waiting import WaitReport
from actorlearner.records.time_shares import TimeShares
from actorlearner.replay.connection import ReplayServer
from actorlearner.replay.reverb_calls import UNREACHABLE
from actorlearner.replay.status import BlockedTime
from actorlearner.replay.watched_servers import WatchedServer
from actorlearner.replay.writer import ReplayWriter
from actorlearner.variables.container import PolicyOrder
from actorlearner.variables.puller import VariablePuller

_log = logging.getLogger(__name__)

ActingPolicy = PolicyFunction | RandomPolicy | ScriptedPolicy

RANDOM_ORDER = PolicyOrder(generation=-1, train_step=RANDOM_TRAIN_STEP)
"""The policy order of random actions, and of the actions of `collect.initial_policy`."""

_FLUSH_TIMEOUT_S = 0.5
_CLOSE_TIMEOUT_S = 2.0
_STATUS_TIMEOUT_S = 5
_BLOCKED_TIMEOUT_S = 1  # Short: acting pauses meanwhile, for one figure of a metrics record.


@dataclasses.dataclass(frozen=True)
class CollectorParts:
    """The parts of a collector, which closes the environments and the writer.

    Attributes:
      environments: the environments to act in.
      writer: writes the transitions to replay.
      replay: the replay server that `writer` writes to.
      puller: receives the policies; `ended` depends on its newest train step.
      metrics: writes the actor's records.
      train_steps: collecting ends when the policy of this train step arrives.
      stop: ends collecting.
      watched: checks that `replay` still serves this run; None if `puller` polls the same server.
      report_episode: called with each complete episode.
      reward_clipping: clips the rewards in replay to [-reward_clipping, reward_clipping]; None: no clipping.
      in_sequences: whether replay stores sequences, which need the policy's info, state and generation.
      info_metrics: the metrics of `environment.info_metrics`.
    """

    environments: EnvironmentBatch
    writer: ReplayWriter
    replay: ReplayServer
    puller: VariablePuller
    metrics: CollectMetrics
    train_steps: int
    stop: Stop
    watched: WatchedServer | None = None
    report_episode: Callable[[Episode], None] = lambda episode: None
    in_sequences: bool = False
    reward_clipping: float | None = None
    info_metrics: Sequence[str] = ()


class Collector:
    """Takes env steps, writes the transitions and reports metrics."""

    def __init__(self, parts: CollectorParts) -> None:
        """Starts at the environments' first observations."""
        self._parts = parts
        self._episodes = RecentEpisodes(
            len(parts.environments.first), ended=self._episode_ended, info_metrics=parts.info_metrics
        )
        self._env_steps = 0
        self._slowest_s: float | None = None
        self._order = RANDOM_ORDER
        self._time = TimeShares("environment", "policy", "writing", "variables", "learner")
        self._blocked = BlockedTime()

    @property
    def ended(self) -> bool:
        """Whether collecting is over: at a stop, or when the policy of the last train step has arrived."""
        if self._parts.watched is not None:
            self._parts.watched.check()
        return self._parts.stop.requested or self._parts.puller.train_step >= self._parts.train_steps

    def step(self, policy: ActingPolicy, order: PolicyOrder) -> None:
        """Takes one env step in each environment; blocks while the rate limiter blocks inserts.

        Args:
          policy: chooses the actions.
          order: the generation and train step of its variables.
        """
        self._time.spent("variables")  # Everything since the last env step.
        action = policy(self._parts.environments.observations, self._parts.environments.first)
        self._time.spent("policy")
        beat("env step", self._env_steps, patience_after(self._slowest_s))
        began = time.monotonic()
        steps = self._parts.environments.step(action, order.train_step)
        self._slowest_s = max(self._slowest_s or 0.0, time.monotonic() - began)
        if self._parts.in_sequences:
            generation = np.full(len(steps.reward), order.generation, np.int64)
            steps = steps._replace(
                policy_generation=generation, policy_info=policy.info, policy_state=policy.state
            )
        self._time.spent("environment")
        self._parts.writer.write(self._clipped(steps))
        self._time.spent("writing")
        self._env_steps += int(np.count_nonzero(steps.valid))
        self._order = order
        self._episodes.add(steps)
        self._time.spent()
        self._wait_for_replay()
        self._report()
        self._time.spent()

    def wait_for_policy(self, seconds: float) -> None:
        """Waits for `seconds` or until a stop, and counts the time as waiting for the learner.

        An actor of an on-policy algorithm waits here once it has collected its share with the newest policy.
        """
        self._time.spent("variables")
        beat("waiting for the next policy")
        self._parts.stop.wait(seconds)
        self._time.spent("learner")
        self._report()
        self._time.spent()

    def _clipped(self, steps: EnvSteps) -> EnvSteps:
        limit = self._parts.reward_clipping
        return steps if limit is None else steps._replace(reward=np.clip(steps.reward, -limit, limit))

    def _episode_ended(
        self, environment: int, episode_return: float, length: int, info: Mapping[str, float]
    ) -> None:
        env_steps = self._parts.metrics.before["env_steps"] + self._env_steps
        self._parts.report_episode(
            Episode(environment, episode_return, length, env_steps, self._order.train_step, info)
        )

    def _wait_for_replay(self) -> None:
        report = WaitReport()
        while not self._flush() and not self.ended:
            report.log(self._why_waiting)
            beat("waiting for replay to accept transitions")
            self._report()

    def _flush(self) -> bool:
        flushed = self._parts.writer.flush(_FLUSH_TIMEOUT_S)
        self._time.spent("writing")
        return flushed

    def _why_waiting(self) -> str:
        try:
            status = self._parts.replay.status(_STATUS_TIMEOUT_S)
        except UNREACHABLE:
            return "the replay server, which does not answer; transitions are kept until it does"
        return (
            f"the rate limiter to accept transitions: the learner has sampled {status.samples:,} for "
            f"{status.inserts:,} inserted"
        )

    def _report(self, *, final: bool = False) -> None:
        age = self._parts.puller.age_s if self._order != RANDOM_ORDER else None
        self._parts.metrics.report(
            self._env_steps,
            self._episodes,
            self._order,
            age,
            self._parts.environments.faults,
            self._fractions,
            final=final,
        )

    def _fractions(self) -> dict[str, float | None]:
        """Returns each phase's share of the time since the last record, by its key in the record."""
        spent = self._time.take()
        # While the rate limiter blocks inserts, writing counts as waiting for the limiter.
        blocked = self._inserts_blocked()
        limiter = None if blocked is None else min(spent["writing"], blocked)
        spent["writing"] -= limiter or 0.0
        # So does waiting for the next iteration's policy: the learner limits collecting there, too.
        waited = spent.pop("learner")
        if limiter is not None:
            limiter += waited
        return {
            **{f"{phase}_fraction": fraction for phase, fraction in spent.items()},
            "rate_limiter_wait_fraction": limiter,
        }

    def _inserts_blocked(self) -> float | None:
        """Returns the fraction of the time since the last record in which the rate limiter blocked inserts.

        It is None for the first record, after a restart of the server, and if the server does not answer.
        """
        try:
            fractions = self._blocked.update(self._parts.replay.status(_BLOCKED_TIMEOUT_S))
        except UNREACHABLE:
            return None
        return None if fractions is None else fractions.inserts

    def close(self) -> None:
        """Flushes pending transitions for at most two seconds and closes the writer and the environments."""
        if not self._parts.writer.close(_CLOSE_TIMEOUT_S):
            _log.info("the replay server did not accept the last transitions in time; they are discarded")
        self._report(final=True)
        self._parts.environments.close()
