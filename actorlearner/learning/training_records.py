"""Records of the training loop: losses, rates and shares of time."""

from collections.abc import Callable

from tf_agents.agents.tf_agent import LossInfo

from actorlearner.learning.learner import Learner
from actorlearner.learning.learner_metrics import LearnerMetrics
from actorlearner.records.time_shares import TimeShares
from actorlearner.replay.status import ReplayStatus


class TrainingRecords:
    """Writes a record when one is due, after a call of the training graph."""

    def __init__(
        self, metrics: LearnerMetrics, learner: Learner, replay_status: Callable[[], ReplayStatus]
    ) -> None:
        """Starts the clock.

        Args:
          metrics: the file and the curves.
          learner: whose measurements are recorded.
          replay_status: returns the status of replay; may block for seconds.
        """
        self._metrics = metrics
        self._learner = learner
        self._replay_status = replay_status
        self._time = TimeShares("graph", "publish")
        self._first = True
        self._unwritten: tuple[int, LossInfo] | None = None

    def spent(self, part: str | None = None) -> None:
        """Attributes the time since the last call to "graph", to "publish" or to neither."""
        self._time.spent(part)

    def add(self, train_step: int, loss: LossInfo, *, last: bool) -> None:
        """Adds a call of the training graph.

        Args:
          train_step: its last train step.
          loss: the losses of this train step, scalars.
          last: whether this is the last train step of the run.
        """
        self._unwritten = (train_step, loss)
        if self._first:  # The first call also optimises the graph: rates exclude it.
            self._first = False
            self.write()
            self.restart_rates()
        elif self._metrics.due or last:
            self.write()

    def write(self) -> None:
        """Writes a record of the newest call of the graph, unless it is written already."""
        if self._unwritten is not None:
            statistics, shares = self._learner.take_statistics(), self._time.take()
            self._metrics.write(*self._unwritten, self._replay_status(), statistics, shares)
            self._unwritten = None

    def restart_rates(self) -> None:
        """Leaves the time until now out of rates and shares."""
        self._metrics.begin(int(self._learner.train_step.numpy()), self._replay_status())
        self._time.take()

    def flush(self) -> bool:
        """Writes the records that a full disk has delayed; returns whether everything is written."""
        return self._metrics.flush()
