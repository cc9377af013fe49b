"""The train step of CrossQ. Import this only where TensorFlow may be imported."""

import math
from typing import NamedTuple

import tensorflow as tf
import tree
from tf_agents.agents import tf_agent
from tf_agents.policies import actor_policy, greedy_policy
from tf_agents.trajectories import trajectory

from actorlearner.agents.batch_normalized import Actor, Critic
from actorlearner.agents.parts import create_moments
from actorlearner.environments.environment import Nest
from actorlearner.environments.specs import EnvironmentSpecs


class CrossqLosses(NamedTuple):
    """The scalars of a train step; those of the actor are of its last update."""

    critic_loss: tf.Tensor
    actor_loss: tf.Tensor
    alpha_loss: tf.Tensor
    q_value: tf.Tensor
    entropy: tf.Tensor
    alpha: tf.Tensor


class Optimizers(NamedTuple):
    """An optimiser for each part of the agent."""

    actor: tf.keras.optimizers.legacy.Optimizer
    critic: tf.keras.optimizers.legacy.Optimizer
    alpha: tf.keras.optimizers.legacy.Optimizer


class CrossqAgent(tf_agent.TFAgent):
    """A soft actor-critic without target networks."""

    def __init__(
        self,
        specs: EnvironmentSpecs,
        actor: Actor,
        critics: tuple[Critic, Critic],
        optimizers: Optimizers,
        train_step: tf.Variable,
        *,
        gamma: float,
        initial_alpha: float,
        target_entropy: float,
        actor_update_period: int,
    ) -> None:
        """Makes the temperature, the optimisers' variables and the policies; arguments as in CrossqConfig."""
        self._actor = actor
        self._critics = critics
        self._optimizers = optimizers
        self._gamma = gamma
        self._target_entropy = target_entropy
        self._actor_update_period = actor_update_period
        self._log_alpha = tf.Variable(math.log(initial_alpha), name="log_alpha")
        first = tf.VariableAggregation.ONLY_FIRST_REPLICA  # They are equal on all.
        self._actor_losses = tf.Variable(tf.zeros([4]), trainable=False, aggregation=first)
        actor.create_variables()
        self._critic_variables = [variable for critic in critics for variable in critic.trainable_variables]
        create_moments(optimizers.actor, actor.trainable_variables)
        create_moments(optimizers.critic, self._critic_variables)
        create_moments(optimizers.alpha, [self._log_alpha])
        policy = actor_policy.ActorPolicy(specs.time_step, specs.action, actor_network=actor)
        super().__init__(
            specs.time_step,
            specs.action,
            policy=greedy_policy.GreedyPolicy(policy),
            collect_policy=policy,
            train_sequence_length=None,
            train_step_counter=train_step,
        )

    def _train(self, experience: trajectory.Transition, weights: tf.Tensor | None) -> tf_agent.LossInfo:
        """Takes one train step; `weights` are not used."""
        critic_loss = self._update_critics(experience)
        observation = experience.time_step.observation
        if self._actor_update_period == 1:
            actor_losses = self._update_actor(observation)
        else:
            actor_losses = tf.cond(
                tf.equal(self.train_step_counter % self._actor_update_period, 0),
                lambda: self._update_actor(observation),
                self._actor_losses.read_value,
            )
        self.train_step_counter.assign_add(1)
        # The sum over the replicas is reported.
        rest = tf.stack([*tf.unstack(actor_losses), tf.exp(self._log_alpha)]) / _replicas()
        losses = CrossqLosses(critic_loss, *tf.unstack(rest))
        return tf_agent.LossInfo(losses.critic_loss + losses.actor_loss, losses)

    def _update_critics(self, experience: trajectory.Transition) -> tf.Tensor:
        """Updates both critics towards one target, r + gamma d (min Q(s', a') - alpha log pi(a' | s')).

        A critic takes (s, a) and (s', a') as one batch: so both are normalised with the moments of their
        mixture, and the targets need no network of their own.
        """
        before, step, after = experience
        following = self._actor(after.observation)[0]
        next_action = following.sample()
        entropy_bonus = -tf.exp(self._log_alpha) * following.log_prob(next_action)
        observations = _join(before.observation, after.observation)
        actions = tf.concat([step.action, next_action], axis=0)
        with tf.GradientTape() as tape:
            both = [tf.split(critic(observations, actions, training=True), 2) for critic in self._critics]
            next_value = tf.minimum(both[0][1], both[1][1]) + entropy_bonus
            target = tf.stop_gradient(after.reward + self._gamma * after.discount * next_value)
            losses = [tf.reduce_mean(tf.math.squared_difference(values, target)) for values, _ in both]
            loss = tf.add_n(losses) / _replicas()
        gradients = tape.gradient(loss, self._critic_variables)
        self._optimizers.critic.apply_gradients(zip(gradients, self._critic_variables, strict=True))
        for critic in self._critics:
            _project(critic)
        return loss

    def _update_actor(self, observation: Nest) -> tf.Tensor:
        """Updates the actor and the temperature; stores and returns losses, Q value and entropy, [4]."""
        variables = self._actor.trainable_variables
        alpha = tf.exp(self._log_alpha)
        with tf.GradientTape() as tape:
            distribution, _ = self._actor(observation, training=True)
            action = distribution.sample()
            log_probability = distribution.log_prob(action)
            # With the running moments: a batch of the actor's own actions must not move them.
            value = tf.minimum(*(critic(observation, action) for critic in self._critics))
            loss = tf.reduce_mean(alpha * log_probability - value) / _replicas()
        gradients = tape.gradient(loss, variables)
        self._optimizers.actor.apply_gradients(zip(gradients, variables, strict=True))
        _project(self._actor)
        entropy = -tf.reduce_mean(log_probability)
        with tf.GradientTape() as tape:
            alpha_loss = self._log_alpha * tf.stop_gradient(entropy - self._target_entropy) / _replicas()
        gradient = tape.gradient(alpha_loss, self._log_alpha)
        self._optimizers.alpha.apply_gradients([(gradient, self._log_alpha)])
        losses = tf.stack([loss * _replicas(), alpha_loss * _replicas(), tf.reduce_mean(value), entropy])
        return tf.identity(self._actor_losses.assign(_mean_over_replicas(losses)))


def _project(part: Actor | Critic) -> None:
    for layer in part.hidden:
        layer.project()


def _join(first: Nest, second: Nest) -> Nest:
    return tree.map_structure(lambda *parts: tf.concat(parts, axis=0), first, second)


def _replicas() -> int:
    context = tf.distribute.get_replica_context()
    assert context is not None, "train steps are taken on replicas"
    return int(context.num_replicas_in_sync)


def _mean_over_replicas(value: tf.Tensor) -> tf.Tensor:
    if _replicas() == 1:
        return value
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, value)
