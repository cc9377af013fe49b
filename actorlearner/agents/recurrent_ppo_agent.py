"""PPO with an LSTM: minibatches are whole sequences that start from the LSTM state stored by the actor.

Earlier train steps of an iteration have changed the weights, so the stored state is slightly outdated.
"""

from typing import NamedTuple

import tensorflow as tf
from tf_agents.agents.ppo.ppo_agent import PPOLossInfo
from tf_agents.agents.tf_agent import LossInfo
from tf_agents.utils import common

from actorlearner.agents.experience import StoredSequence
from actorlearner.agents.lstm import State
from actorlearner.agents.on_policy_agent import flatten_time
from actorlearner.agents.ppo_agent import Examples, PpoAgent, normalized, time_steps_of
from actorlearner.environments.environment import Nest

STATE = "actor_network_state"
"""The key of the LSTM's state in the state of TF-Agents' policy."""


class SequenceExamples(NamedTuple):
    """Whole sequences to train on.

    Attributes:
      steps: their env steps, [B, T, ...].
      first: bool [B, T], where an episode begins.
      state: of the LSTM before the first env step, [B, units] each.
    """

    steps: Examples
    first: tf.Tensor
    state: State


class RecurrentPpoAgent(PpoAgent):
    """A PpoAgent whose networks share an LSTM."""

    def prepare(self, sequences: StoredSequence) -> Nest:
        """Computes the values, returns and advantages of an iteration; an example is a whole sequence."""
        return SequenceExamples(
            self._evaluate(sequences), sequences.first, tuple(sequences.policy_state[STATE])
        )

    def _values(self, sequences: StoredSequence) -> tuple[tf.Tensor, tf.Tensor]:
        body = self._actor_net.body
        hidden, states = body.unroll(
            sequences.observation, sequences.first, tuple(sequences.policy_state[STATE])
        )
        # Each next observation is evaluated by itself: the next env step may belong to another episode.
        following, _ = body(flatten_time(sequences.next_observation), flatten_time(states))
        next_values = tf.reshape(self._value_net.head(following), tf.shape(sequences.reward))
        return self._value_net.head(hidden), next_values

    def _loss_of(self, examples: SequenceExamples) -> LossInfo:
        """Returns the losses of PPOClipAgent, for the outputs of the LSTM along the sequences."""
        hidden, _ = self._actor_net.body.unroll(examples.steps.observation, examples.first, examples.state)
        steps, hidden = flatten_time((examples.steps, hidden))
        time_steps = time_steps_of(steps)
        distribution = self._actor_net.head(hidden, steps.observation)
        policy_loss = self.policy_gradient_loss(
            time_steps,
            steps.info.action,
            steps.info.log_probability,
            normalized(steps.advantage, steps.weight),
            distribution,
            steps.weight,
        )
        errors = tf.math.squared_difference(steps.returns, self._value_net.head(hidden))
        value_loss = self._value_pred_loss_coef * common.aggregate_losses(errors, steps.weight).total_loss
        entropy_loss = self.entropy_regularization_loss(time_steps, distribution.entropy(), steps.weight)
        zero = tf.zeros_like(policy_loss)
        extra = PPOLossInfo(policy_loss, value_loss, zero, entropy_loss, zero, self._clip_fraction)
        return LossInfo(policy_loss + value_loss + entropy_loss, extra)

    def _trained_variables(self) -> list[tf.Variable]:
        variables = super()._trained_variables()
        return list({variable.ref(): variable for variable in variables}.values())
