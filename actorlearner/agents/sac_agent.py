"""TF-Agents' SAC agent with three changes."""

import threading
from typing import Any, NamedTuple

import tensorflow as tf
from tf_agents.agents.sac import sac_agent
from tf_agents.utils import common


class SacLosses(NamedTuple):
    """The scalars of a train step."""

    critic_loss: tf.Tensor
    actor_loss: tf.Tensor
    alpha_loss: tf.Tensor
    q_value: tf.Tensor
    entropy: tf.Tensor
    alpha: tf.Tensor


class _Drawn(threading.local):
    """The newest drawn actions, by thread: a strategy traces each replica in a thread of its own.

    Attributes:
      log_probabilities: float32 [batch], of the newest actions. When alpha's loss reads them, these are the
        actions of the actor's loss.
    """

    log_probabilities: Any = None


_drawn = _Drawn()


class SacAgent(sac_agent.SacAgent):
    """TF-Agents' SAC with three changes.

    - The critics' variables have the same order in every process. TF-Agents puts them into a set, ordered by
      their addresses in memory. A group of learners sums its gradients by position, so it would sum gradients
      of different variables.
    - TF-Agents samples actions a second time, for the loss of alpha. This agent reuses the actions of the
      actor's loss, as Stable-Baselines3 does, and saves a forward pass.
    - It reports Q values, entropy and alpha: they show whether critics overestimate or exploration has died.
    """

    def alpha_loss(
        self, time_steps: Any, weights: tf.Tensor | None = None, training: bool = False
    ) -> tf.Tensor:
        """Returns the loss of the temperature, a scalar, for the actions of the actor's loss just before."""
        entropies = tf.stop_gradient(-_drawn.log_probabilities)
        losses = self._log_alpha * (entropies - self._target_entropy)
        return common.aggregate_losses(per_example_loss=losses, sample_weight=weights).total_loss

    def _train(self, experience: Any, weights: Any) -> Any:
        alpha = tf.exp(self._log_alpha)
        info = super()._train(experience, weights)
        replicas = tf.distribute.get_replica_context().num_replicas_in_sync
        # Divided, because the extras are summed over the replicas.
        entropy = -tf.reduce_mean(_drawn.log_probabilities) / replicas
        q_value = -info.extra.actor_loss - alpha * entropy
        return info._replace(
            extra=SacLosses(**info.extra._asdict(), q_value=q_value, entropy=entropy, alpha=alpha / replicas)
        )

    def _actions_and_log_probs(self, time_steps: Any, training: bool = False) -> Any:
        action, log_probabilities = super()._actions_and_log_probs(time_steps, training)
        _drawn.log_probabilities = log_probabilities
        return action, log_probabilities

    def _apply_gradients(self, gradients: Any, variables: Any, optimizer: Any) -> None:
        networks = (self._critic_network_1, self._critic_network_2, self._actor_network)
        known = [id(variable) for network in networks for variable in network.trainable_variables]
        place = {identity: number for number, identity in enumerate([*known, id(self._log_alpha)])}
        pairs = sorted(zip(gradients, variables, strict=True), key=lambda pair: place[id(pair[1])])
        super()._apply_gradients(*zip(*pairs, strict=True), optimizer)
