"""A callback of your own: prints each evaluation that is better than all before.

Start it from the root of the repository:
.venv/bin/actorlearner local --config sac_pendulum --set "callbacks=['examples.best_return:BestReturn']"
"""

from actorlearner.callbacks import Callback, Context, Evaluation


class BestReturn(Callback):
    """Runs in the eval actor; what it prints is in logs/eval-actor.log of the run."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._best = float("-inf")

    def on_evaluation(self, evaluation: Evaluation) -> None:
        """Compares the average return with the best so far."""
        if evaluation.average_return > self._best:
            self._best = evaluation.average_return
            print(f"new best return {self._best:.4g} at train step {evaluation.train_step}", flush=True)
