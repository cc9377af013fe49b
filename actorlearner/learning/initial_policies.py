"""What becomes of the policies of before training, and when."""

from actorlearner.learning.policy_export import PolicyExport
from actorlearner.process.heartbeat import LONG_PATIENCE_S, beat
from actorlearner.variables.publisher import Publisher


class InitialPolicies:
    """The policies of before training, for evaluation and as SavedModels.

    To play and to save them takes a core for seconds, in which training could begin: both may wait for that.

    Attributes:
      saving: whether they are being saved.
    """

    def __init__(self, publisher: Publisher, export: PolicyExport, train_step: int) -> None:
        """Copies what is to be evaluated; a learner that goes on from a later train step has nothing.

        Args:
          publisher: takes the evaluation.
          export: saves the policies, now and later.
          train_step: at which the learner begins.
        """
        self._publisher = publisher
        self._requests = [publisher.request(env_steps=0)] if train_step == 0 else []
        self.export = export
        self.saving = False

    def evaluate(self) -> None:
        """Queues the evaluation, once; to be called before that of any later train step is queued."""
        if self._requests:  # Called after every few train steps: the publisher is woken up once.
            self._publisher.queue(self._requests)
            self._requests = []

    def save(self) -> bool:
        """Saves the policies, which takes seconds, unless they are; returns whether it did."""
        if self.export.begun:
            return False
        self.saving = True
        beat("saving the policies", patience_s=LONG_PATIENCE_S)
        self.export.save()
        self.saving = False
        return True
