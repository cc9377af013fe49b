"""The interface of a learner's outputs. The base class writes and publishes nothing."""

import reverb
import tensorflow as tf
from tf_agents.agents.tf_agent import LossInfo

from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.learning.training_graph import TrainingGraph
from actorlearner.replay.status import ReplayStatusSource


class Outputs:
    """No-op implementation for the learners of a group that are not the chief; the chief has ChiefOutputs.

    The learner's role calls the methods in this order, and `check` repeatedly after `take_over`.
    """

    @property
    def writer(self) -> tf.summary.SummaryWriter:
        """TensorFlow's writer of the curves."""
        return tf.summary.create_noop_writer()

    def restore(self, specs: EnvironmentSpecs, strategy: tf.distribute.Strategy) -> None:
        """Restores the variables with which training begins."""

    def take_over(self, client: reverb.Client, replay: ReplayStatusSource) -> None:
        """Takes over the run as a new generation, and publishes the policy."""

    def check_restored(self) -> None:
        """Checks that the restored checkpoint had exactly the agent's variables; call once all exist."""

    def output_initial_policies(self) -> None:
        """Queues the initial policy's evaluation and saves the initial policies before training begins.

        Called if replay does not fill for a while.
        """

    def begin_training(self, graph: TrainingGraph) -> None:
        """Starts the measurements."""

    def check(self) -> None:
        """Raises the error with which publishing has failed, if any."""

    def after_call(self, train_step: int, loss: LossInfo) -> None:
        """Publishes, saves and records what is due after a call of the training graph.

        Args:
          train_step: the last train step.
          loss: its losses, scalars.
        """

    def after_training(self) -> None:
        """Records the last train step."""

    def end(self, *, stopped: bool) -> None:
        """Writes the last checkpoint and delivers the last policies.

        Args:
          stopped: whether a signal ends the learner, instead of its last train step.
        """
