"""DQN with an LSTM, trained on sequences that start from the LSTM state stored by the actor.

The first `burn_in` env steps of a sequence only bring the state up to date with the present weights.
("Recurrent Experience Replay in Distributed Reinforcement Learning", Kapturowski et al. 2019,
https://openreview.net/forum?id=r1lyTjAqYX.)
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tree
from tf_agents.agents.dqn import dqn_agent
from tf_agents.agents.tf_agent import LossInfo
from tf_agents.networks import network
from tf_agents.utils import common

from actorlearner.agents.encoder import AgentSpecs, ObservationEncoder
from actorlearner.agents.experience import StoredSequence
from actorlearner.agents.lstm import Lstm, State, state_spec
from actorlearner.environments.environment import Nest

_MAX_SHARE = 0.9
"""R2D2's eta: a sequence's priority is eta times its largest error plus 1 - eta times its mean error."""


class RecurrentQNetwork(network.Network):
    """A network from observations and the state of its LSTM to a Q value for each action."""

    def __init__(
        self, specs: AgentSpecs, layers: Sequence[int], units: int, name: str = "RecurrentQ"
    ) -> None:
        """Makes hidden layers with the units `layers`, and an LSTM with `units` behind them."""
        super().__init__(specs.observation, state_spec=state_spec(units), name=name)
        hidden = [tf.keras.layers.Dense(count, activation="relu") for count in layers]
        self._memory = Lstm([ObservationEncoder(specs), *hidden], units)  # The name in checkpoints.
        self._values = tf.keras.layers.Dense(int(specs.action.maximum) + 1)

    def call(
        self, observation: Nest, step_type: Any = (), network_state: Any = (), training: bool = False
    ) -> tuple[tf.Tensor, State]:
        """Returns the Q values of a batch of observations, [batch, actions], and the new state."""
        output, state = self._memory(observation, network_state)
        return self._values(output), state

    def unroll(self, observations: Nest, first: tf.Tensor, state: State) -> tuple[tf.Tensor, State]:
        """Returns the Q values along sequences, [batch, T, actions], and the last state; see Lstm."""
        outputs, states = self._memory.unroll(observations, first, state)
        return self._values(outputs), tuple(part[:, -1] for part in states)


class RecurrentDqnAgent(dqn_agent.DqnAgent):
    """A DqnAgent of a RecurrentQNetwork, which trains on StoredSequences."""

    def __init__(
        self, *arguments: Any, double: bool, burn_in: int, trace_decay: float, **keywords: Any
    ) -> None:
        """Makes a DqnAgent; `burn_in`: env steps that only bring the state up to date."""
        self._double = double
        self._burn_in = burn_in
        self._trace_decay = trace_decay
        super().__init__(*arguments, **keywords)

    def _loss(
        self,
        experience: StoredSequence,
        td_errors_loss_fn: Any = None,
        gamma: float = 1.0,
        reward_scale_factor: float = 1.0,
        weights: Any = None,
        training: bool = False,
    ) -> LossInfo:
        """Returns the loss of a batch of sequences, each the mean over its env steps."""
        online = self._q_values(self._q_network, experience)
        target = tf.stop_gradient(self._q_values(self._target_q_network, experience))
        steps = _after(experience, self._burn_in)
        values = tf.gather(online[:, :-1], steps.action, axis=2, batch_dims=2)
        chosen = tf.argmax(self._allowed((online if self._double else target)[:, 1:], steps), axis=2)
        following = tf.gather(target[:, 1:], chosen, axis=2, batch_dims=2)
        # A truncated env step has no target: the next row of `target` belongs to another episode.
        learned = tf.cast(steps.valid & ~(steps.last & (steps.discount > 0.0)), tf.float32)
        rewards = reward_scale_factor * steps.reward
        traces = self._trace_decay * tf.cast(~steps.last[:, :-1], tf.float32) * learned[:, 1:]
        targets = lambda_returns(rewards, gamma * steps.discount, following, traces)
        losses = learned * td_errors_loss_fn(tf.stop_gradient(targets), values)
        errors = learned * tf.abs(targets - values)
        loss = common.aggregate_losses(per_example_loss=tf.reduce_mean(losses, axis=1), sample_weight=weights)
        error = _MAX_SHARE * tf.reduce_max(errors, axis=1) + (1 - _MAX_SHARE) * tf.reduce_mean(errors, axis=1)
        extra = dqn_agent.DqnLossInfo(td_loss=tf.reduce_mean(losses, axis=1), td_error=error)
        return LossInfo(loss.total_loss, extra)

    def _allowed(self, values: tf.Tensor, steps: StoredSequence) -> tf.Tensor:
        """Returns the Q values of the next observations, without those of actions that are not allowed."""
        if self._observation_and_action_constraint_splitter is None:
            return values
        _, mask = self._observation_and_action_constraint_splitter(steps.next_observation)
        return tf.where(tf.cast(mask, tf.bool), values, values.dtype.min)

    def _q_values(self, network: RecurrentQNetwork, experience: StoredSequence) -> tf.Tensor:
        """Returns the Q values after the burn-in: of every observation, and of the last next observation."""
        state = experience.policy_state
        if self._burn_in:
            before = tree.map_structure(lambda leaf: leaf[:, : self._burn_in], experience.observation)
            _, state = network.unroll(before, experience.first[:, : self._burn_in], state)
            state = tree.map_structure(tf.stop_gradient, state)
        steps = _after(experience, self._burn_in)
        observations = tree.map_structure(
            lambda leaf, following: tf.concat([leaf, following[:, -1:]], axis=1),
            steps.observation,
            steps.next_observation,
        )
        first = tf.concat([steps.first, tf.zeros_like(steps.first[:, :1])], axis=1)
        values, _ = network.unroll(observations, first, state)
        return values


def lambda_returns(
    rewards: tf.Tensor, discounts: tf.Tensor, next_values: tf.Tensor, traces: tf.Tensor
) -> tf.Tensor:
    """Returns mixtures of returns of one and more env steps, [batch, T].

    With the traces l, G_t = r_t + d_t ((1 - l_t) V(s_(t+1)) + l_t G_(t+1)), and l = 0 at the end of the
    sequence. With greedy values it is Peng's Q(lambda), which does not cut traces where behaviour was not
    greedy. ("Revisiting Peng's Q(lambda) for Modern Reinforcement Learning", Kozuno et al. 2021,
    https://arxiv.org/abs/2103.00107.)

    Args:
      rewards: r, float32 [batch, T].
      discounts: d, float32 [batch, T].
      next_values: V(s_(t+1)), float32 [batch, T].
      traces: l, float32 [batch, T - 1].
    """
    returns = [rewards[:, -1] + discounts[:, -1] * next_values[:, -1]]
    for t in reversed(range(int(traces.shape[1]))):
        mixed = next_values[:, t] + traces[:, t] * (returns[-1] - next_values[:, t])
        returns.append(rewards[:, t] + discounts[:, t] * mixed)
    return tf.stack(returns[::-1], axis=1)


def _after(experience: StoredSequence, burn_in: int) -> StoredSequence:
    """Returns the sequences without their first `burn_in` env steps; `policy_*` fields do not change."""
    whole = ("policy_state", "policy_train_step", "policy_generation", "policy_info")
    parts = {
        name: tree.map_structure(lambda leaf: leaf[:, burn_in:], part)
        for name, part in experience._asdict().items()
        if name not in whole
    }
    return experience._replace(**parts)
