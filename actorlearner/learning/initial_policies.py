"""Evaluates and saves the policies from before training."""

from actorlearner.learning.policy_export import PolicyExport
from actorlearner.process.heartbeat import LONG_PATIENCE_S, beat
from actorlearner.variables.publisher import Publisher


class InitialPolicies:
    """The policies from before training, for evaluation and as SavedModels.

    Playing and saving them takes a core for seconds in which training could begin: both wait for that.

    Attributes:
      saving: whether they are being saved.
    """

    def __init__(self, publisher: Publisher, export: PolicyExport, train_step: int) -> None:
        """Copies the policy to evaluate; a learner that resumes at a later train step has none.

        Args:
          publisher: queues the evaluation.
          export: saves the policies, now and later.
          train_step: the train step at which the learner begins.
        """
        self._publisher = publisher
        self._requests = [publisher.request(env_steps=0)] if train_step == 0 else []
        self.export = export
        self.saving = False

    def evaluate(self) -> None:
        """Queues the evaluation, once; call it before a later train step's evaluation is queued."""
        if self._requests:  # It is called often, and wakes up the publisher once.
            self._publisher.queue(self._requests)
            self._requests = []

    def save(self) -> bool:
        """Saves the policies, which takes seconds, unless they are saved; returns whether it did."""
        if self.export.begun:
            return False
        self.saving = True
        beat("saving the policies", patience_s=LONG_PATIENCE_S)
        self.export.save()
        self.saving = False
        return True
