"""The metrics file and TensorBoard curves of a collect actor."""

from collections.abc import Sequence

import numpy as np

from actorlearner.acting.recent_episodes import RecentEpisodes
from actorlearner.agents.experience import RANDOM_TRAIN_STEP
from actorlearner.callbacks.callback import Episode
from actorlearner.environments.batch import EnvironmentBatch
from actorlearner.environments.environment import EnvSteps
from actorlearner.process.ram import resident_bytes
from actorlearner.records.metrics import MetricsWriter, Rate, newest_records, read_records
from actorlearner.records.run_directory import RunDirectory
from actorlearner.records.summaries import Summaries
from actorlearner.records.time_shares import TimeShares
from actorlearner.replay.connection import ReplayServer
from actorlearner.replay.reverb_calls import UNREACHABLE
from actorlearner.replay.status import BlockedTime
from actorlearner.variables.container import PolicyOrder
from actorlearner.variables.puller import VariablePuller

RANDOM_ORDER = PolicyOrder(generation=-1, train_step=RANDOM_TRAIN_STEP)
"""The policy order of random actions, and of the actions of `collect.initial_policy`."""

_STATUS_TIMEOUT_S = 1  # Short: acting pauses meanwhile, for one figure of a record.


def recorded_env_steps(directory: RunDirectory, actor_index: int) -> int:
    """Returns the env steps of earlier actors with this index, by their last record; 0 without one."""
    recorded = newest_records(directory.metrics(f"collect-{actor_index}"))
    return int(recorded[-1]["env_steps"]) if recorded else 0


class CollectMetrics:
    """Measures a collect actor, and writes a record every METRICS_INTERVAL_S.

    The counters continue from the last record of the previous actor with this index. If that actor was
    killed, its work after that record (up to METRICS_INTERVAL_S) is not counted.

    Attributes:
      time: the actor's time by its phases; the Collector reports them.
      env_steps: valid env steps since this actor started, in all its environments together.
    """

    def __init__(
        self,
        directory: RunDirectory,
        actor_index: int,
        environments: EnvironmentBatch,
        replay: ReplayServer,
        puller: VariablePuller,
        info_metrics: Sequence[str] = (),
    ) -> None:
        """Opens the files.

        Args:
          directory: the run directory.
          actor_index: index of the collect actor.
          environments: the actor's environments, which count their faults.
          replay: the replay server that it writes to, which measures how long it blocks inserts.
          puller: receives its policies.
          info_metrics: the metrics of `environment.info_metrics`.
        """
        name = f"collect-{actor_index}"
        recorded = read_records(directory.metrics(name))
        self._resumed = bool(recorded)
        self._before = recorded[-1] if recorded else {"env_steps": 0, "episodes": 0, "faults": 0}
        self._metrics = MetricsWriter(directory.metrics(name))
        self._summaries = Summaries(directory.summaries(name))
        self._rate = Rate(self._before["env_steps"])
        self._begun = False
        self._environments = environments
        self._replay = replay
        self._puller = puller
        self._episodes = RecentEpisodes(len(environments.first), info_metrics=info_metrics)
        self._order = RANDOM_ORDER
        self._blocked = BlockedTime()
        self.time = TimeShares("environment", "policy", "writing", "variables", "learner")
        self.env_steps = 0

    def add(self, steps: EnvSteps, order: PolicyOrder) -> list[Episode]:
        """Adds one env step of each environment, by the policy of `order`; returns the complete episodes."""
        self.env_steps += int(np.count_nonzero(steps.valid))
        self._order = order
        return self._episodes.add(steps, self._before["env_steps"] + self.env_steps)

    def report(self, *, final: bool = False) -> None:
        """Writes a record if one is due, or if it is the first or the `final` one; cheap otherwise."""
        if self._begun and not (self._rate.due or final):
            return
        self._begun = True
        episodes, policy = self._episodes, self._order
        env_steps = self._before["env_steps"] + self.env_steps
        info = episodes.average_info
        record = {
            "env_steps": env_steps,
            "episodes": self._before["episodes"] + episodes.episodes,
            "env_steps_per_s": self._rate.update(env_steps),
            "average_return": episodes.average_return,
            "average_episode_length": episodes.average_episode_length,
            **({"average_info": info} if info else {}),
            "policy_train_step": policy.train_step,
            "policy_generation": policy.generation,
            "policy_age_s": None if policy == RANDOM_ORDER else self._puller.age_s,
            "faults": self._before["faults"] + self._environments.faults,
            **self._fractions(),
            "memory_bytes": resident_bytes(),
        }
        self._metrics.write(record)
        curves = {f"collect/{key}": value for key, value in record.items() if key != "average_info"}
        curves |= {f"collect/info/{name}": value for name, value in info.items()}
        # Random actions are plotted at train step 0, but not a restarted actor's: the curve is past it.
        if policy.train_step >= 0 or not self._resumed:
            self._summaries.scalars(curves, max(0, policy.train_step))
        self._summaries.flush()

    def _fractions(self) -> dict[str, float | None]:
        """Returns each phase's share of the time since the last record, by its key in the record."""
        spent = self.time.take()
        waited = spent.pop("learner")
        limiter = None
        if (blocked := self._inserts_blocked()) is not None:
            # While the rate limiter blocks inserts, writing counts as waiting for it. So does waiting for the
            # next iteration's policy: the learner limits collecting there, too.
            limited = min(spent["writing"], blocked)
            spent["writing"] -= limited
            limiter = limited + waited
        return {
            **{f"{phase}_fraction": fraction for phase, fraction in spent.items()},
            "rate_limiter_wait_fraction": limiter,
        }

    def _inserts_blocked(self) -> float | None:
        """Returns the fraction of the time since the last record in which the rate limiter blocked inserts.

        It is None for the first record, after a restart of the server, and if the server does not answer.
        """
        try:
            fractions = self._blocked.update(self._replay.status(_STATUS_TIMEOUT_S))
        except UNREACHABLE:
            return None
        return None if fractions is None else fractions.inserts
