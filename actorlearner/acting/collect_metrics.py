"""The metrics file and TensorBoard curves of a collect actor."""

from collections.abc import Callable, Mapping

from actorlearner.acting.recent_episodes import RecentEpisodes
from actorlearner.process.ram import resident_bytes
from actorlearner.records.metrics import MetricsWriter, Rate, newest_records, read_records
from actorlearner.records.run_directory import RunDirectory
from actorlearner.records.summaries import Summaries
from actorlearner.variables.container import PolicyOrder


def recorded_env_steps(directory: RunDirectory, actor_index: int) -> int:
    """Returns the env steps of earlier actors with this index, by their last record; 0 without one."""
    recorded = newest_records(directory.metrics(f"collect-{actor_index}"))
    return int(recorded[-1]["env_steps"]) if recorded else 0


class CollectMetrics:
    """Writes a record every METRICS_INTERVAL_S; `report` is cheap enough to call after every env step.

    Attributes:
      before: the last record of the previous actor with this index; the counters continue from it. If that
        actor was killed, its work after that record (up to METRICS_INTERVAL_S) is not counted.
    """

    def __init__(self, directory: RunDirectory, actor_index: int) -> None:
        """Opens the files."""
        name = f"collect-{actor_index}"
        recorded = read_records(directory.metrics(name))
        self._resumed = bool(recorded)
        self.before = recorded[-1] if recorded else {"env_steps": 0, "episodes": 0, "faults": 0}
        self._metrics = MetricsWriter(directory.metrics(name))
        self._summaries = Summaries(directory.summaries(name))
        self._rate = Rate(self.before["env_steps"])
        self._begun = False

    def report(
        self,
        env_steps: int,
        episodes: RecentEpisodes,
        policy: PolicyOrder,
        policy_age_s: float | None,
        faults: int,
        fractions: Callable[[], Mapping[str, float | None]],
        *,
        final: bool = False,
    ) -> None:
        """Writes a record if one is due, or if it is the first or the `final` one.

        Args:
          env_steps: env steps since this actor started.
          episodes: its episodes since then.
          policy: generation and train step of its policy; the train step is -1 while it acts randomly.
          policy_age_s: seconds since it received that policy; None while it acts randomly.
          faults: failures of its environments since it started.
          fractions: returns the shares of the actor's time since the last record by their keys; called only
            when a record is written.
          final: whether this is the actor's last record.
        """
        if self._begun and not (self._rate.due or final):
            return
        self._begun = True
        env_steps += self.before["env_steps"]
        info = episodes.average_info
        record = {
            "env_steps": env_steps,
            "episodes": self.before["episodes"] + episodes.episodes,
            "env_steps_per_s": self._rate.update(env_steps),
            "average_return": episodes.average_return,
            "average_episode_length": episodes.average_episode_length,
            **({"average_info": info} if info else {}),
            "policy_train_step": policy.train_step,
            "policy_generation": policy.generation,
            "policy_age_s": policy_age_s,
            "faults": self.before["faults"] + faults,
            **fractions(),
            "memory_bytes": resident_bytes(),
        }
        self._metrics.write(record)
        curves = {f"collect/{key}": value for key, value in record.items() if key != "average_info"}
        curves |= {f"collect/info/{name}": value for name, value in info.items()}
        # Random actions are plotted at train step 0, but not a restarted actor's: the curve is past it.
        if policy.train_step >= 0 or not self._resumed:
            self._summaries.scalars(curves, max(0, policy.train_step))
        self._summaries.flush()
