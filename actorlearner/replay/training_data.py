"""What the learner trains on."""

import tensorflow as tf
from tf_agents.trajectories import policy_step, time_step, trajectory

from actorlearner.replay.transition import StoredTransition


def as_transition(stored: StoredTransition) -> trajectory.Transition:
    """Gives a batch of stored transitions ([batch, ...] tensors) the form that agents train on.

    Neither end is marked as FIRST or LAST: a transition is never a boundary, and the discount alone says
    whether the next state has a value.
    """
    middle = tf.fill(tf.shape(stored.reward), time_step.StepType.MID)
    before = time_step.TimeStep(
        step_type=middle,
        reward=tf.zeros_like(stored.reward),
        discount=tf.ones_like(stored.discount),
        observation=stored.observation,
    )
    after = time_step.TimeStep(
        step_type=middle,
        reward=stored.reward,
        discount=stored.discount,
        observation=stored.next_observation,
    )
    action = policy_step.PolicyStep(action=stored.action, state=(), info=())
    return trajectory.Transition(before, action, after)
