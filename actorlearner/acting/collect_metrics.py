"""What a collect actor reports: its metrics file and its TensorBoard curves."""

from collections.abc import Callable, Mapping

from actorlearner.environments.batch import EpisodeStatistics
from actorlearner.process.memory import resident_bytes
from actorlearner.records.metrics import MetricsWriter, Rate, read_records
from actorlearner.records.run_directory import RunDirectory
from actorlearner.records.summaries import Summaries
from actorlearner.variables.container import PolicyOrder


class CollectMetrics:
    """Writes a record now and then; `report` is cheap to call after every env step.

    Attributes:
      before: the last record of the actor that had this index before, which the counters continue. What
        that actor did after it, if it was killed, is not counted: up to METRICS_INTERVAL_S.
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
        episodes: EpisodeStatistics,
        policy: PolicyOrder,
        policy_age_s: float | None,
        faults: int,
        fractions: Callable[[], Mapping[str, float | None]],
        *,
        final: bool = False,
    ) -> None:
        """Writes a record if one is due, or if it is the first or the `final` one.

        Args:
          env_steps: env steps of this actor since it was started.
          episodes: its episodes since then.
          policy: of the variables it acts with; its train step is -1 while it acts randomly.
          policy_age_s: seconds since it got them; None while it acts randomly.
          faults: how often its environments failed since then.
          fractions: called only for a record; which fractions of its time since the last one the actor spent
            on what, by their keys.
          final: whether the actor ends here.
        """
        if self._begun and not (self._rate.due or final):
            return
        self._begun = True
        env_steps += self.before["env_steps"]
        record = {
            "env_steps": env_steps,
            "episodes": self.before["episodes"] + episodes.episodes,
            "env_steps_per_s": round(self._rate.update(env_steps), 2),
            "average_return": episodes.average_return,
            "average_episode_length": episodes.average_episode_length,
            "policy_train_step": policy.train_step,
            "policy_generation": policy.generation,
            "policy_age_s": policy_age_s,
            "faults": self.before["faults"] + faults,
            **fractions(),
            "memory_bytes": resident_bytes(),
        }
        self._metrics.write(record)
        curves = {f"collect/{key}": value for key, value in record.items()}
        # Random actions belong before the first train step, or, of an actor that was started again, nowhere.
        if policy.train_step >= 0 or not self._resumed:
            self._summaries.scalars(curves, max(0, policy.train_step))
        self._summaries.flush()
