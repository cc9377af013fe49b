"""TF-Agents' SAC agent with two additions. Import this only where TensorFlow may be imported."""

from typing import Any, NamedTuple

import tensorflow as tf
from tf_agents.agents.sac import sac_agent


class SacLosses(NamedTuple):
    """The scalars of a train step."""

    critic_loss: tf.Tensor
    actor_loss: tf.Tensor
    alpha_loss: tf.Tensor
    q_value: tf.Tensor
    entropy: tf.Tensor
    alpha: tf.Tensor


class OrderedSacAgent(sac_agent.SacAgent):
    """SAC with the same order of the critics' variables in every process, and with more metrics.

    - TF-Agents puts the critics' variables into a set, whose order depends on their addresses in memory. A
      group of learners sums its gradients by position, so it would sum gradients of different variables.
    - It reports Q values, entropy and alpha: they show whether critics overestimate or exploration has died.
    """

    _entropy: Any = None

    def _train(self, experience: Any, weights: Any) -> Any:
        alpha = tf.exp(self._log_alpha)
        info = super()._train(experience, weights)
        replicas = tf.distribute.get_replica_context().num_replicas_in_sync
        entropy = self._entropy / replicas  # The sum over the replicas is reported.
        q_value = -info.extra.actor_loss - alpha * entropy
        return info._replace(
            extra=SacLosses(**info.extra._asdict(), q_value=q_value, entropy=entropy, alpha=alpha / replicas)
        )

    def _actions_and_log_probs(self, time_steps: Any, training: bool = False) -> Any:
        action, log_probability = super()._actions_and_log_probs(time_steps, training)
        self._entropy = -tf.reduce_mean(log_probability)
        return action, log_probability

    def _apply_gradients(self, gradients: Any, variables: Any, optimizer: Any) -> None:
        networks = (self._critic_network_1, self._critic_network_2, self._actor_network)
        known = [id(variable) for network in networks for variable in network.trainable_variables]
        place = {identity: number for number, identity in enumerate([*known, id(self._log_alpha)])}
        pairs = sorted(zip(gradients, variables, strict=True), key=lambda pair: place[id(pair[1])])
        super()._apply_gradients(*zip(*pairs, strict=True), optimizer)
