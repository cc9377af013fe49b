"""The transition that agents train on, independent of the layout that stores it."""

from typing import NamedTuple

from actorlearner.environments.environment import Nest

RANDOM_POLICY = -1
"""The policy train step of random actions."""


class StoredTransition(NamedTuple):
    """A batch of n-step transitions (s, a, R, D, s'); every leaf has a leading batch dimension.

    With m env steps from s to s', where m is n, or fewer at the end of an episode, and with their rewards r
    and discounts d,

        R = sum over k < m of gamma^k d_0 ... d_(k-1) r_k
        D = gamma^(m-1) d_0 ... d_(m-1)

    so that R + gamma D V(s') is the target of an agent that discounts one env step. (Sutton and Barto,
    Reinforcement Learning, 2nd edition, section 7.1, with the discounts of a terminated episode.)

    Attributes:
      observation, action, next_observation: nests of the environment's specs.
      reward, discount: float32 R and D; for n = 1 the reward and discount of the env step.
      policy_train_step: int64, the train step of the policy that acted; RANDOM_POLICY for random actions.
    """

    observation: Nest
    action: Nest
    reward: Nest
    discount: Nest
    next_observation: Nest
    policy_train_step: Nest
