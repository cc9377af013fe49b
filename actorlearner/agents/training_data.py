"""Trains TF-Agents' agents on decoded batches."""

from typing import Any

import tensorflow as tf
from tf_agents.agents.tf_agent import LossInfo, TFAgent
from tf_agents.trajectories import policy_step, time_step, trajectory

from actorlearner.agents.experience import Stored, StoredTransition


def train(agent: TFAgent, stored: Stored, weights: tf.Tensor | None) -> LossInfo:
    """Takes one train step on one replica's batch, see `AgentBuilder.make_agent`."""
    experience: Any = as_transition(stored) if isinstance(stored, StoredTransition) else stored
    return agent.train(experience, weights)


def as_transition(stored: StoredTransition) -> trajectory.Transition:
    """Converts a batch of stored transitions ([batch, ...] tensors).

    Both time steps are MID, never FIRST or LAST: a transition does not cross episodes, and its discount alone
    determines whether the next state has a value.
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
