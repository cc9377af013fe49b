"""The experience contract: what an algorithm learns from, and the forms in which it receives it.

A builder declares an `Experience`. The experience table, its signature and rate limiter, the writers, the
dataset and the learner's loop all follow from it: they know no algorithm, and algorithms do not know Reverb.
"""

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # They import NumPy, which the commands that only read files do without.
    from tf_agents.trajectories import trajectory

    from actorlearner.environments.environment import Nest

RANDOM_TRAIN_STEP = -1
"""The policy train step of random actions, and of the actions of `collect.initial_policy`."""


@dataclasses.dataclass(frozen=True)
class Priorities:
    """Prioritised replay: unit i is drawn with probability P(i) = p_i^exponent / sum over k of p_k^exponent.

    A unit is a transition or a sequence. Its priority p is the absolute value of its error when it was last
    trained on, as a fraction of the largest recent errors; a new unit has the priority 1. With N units in the
    table, the loss of unit i is weighted by (N P(i))^-importance_exponent, divided by the largest weight in
    its batch. (Prioritized Experience Replay, Schaul et al. 2015, https://arxiv.org/abs/1511.05952,
    section 3.)
    """

    exponent: float
    importance_exponent: float


@dataclasses.dataclass(frozen=True)
class Iteration:
    """On-policy experience: each unit is consumed once, in the order in which it arrived.

    Attributes:
      env_steps: env steps that the learner gathers for one iteration.
      epochs: how often an iteration trains on each env step, in shuffled minibatches of `learn.batch_size`.
      max_policy_lag: the most iterations by which the policy that acted may be older than the newest policy.
        Units of older policies are dropped. With 0, actors wait for the policy of each iteration.
      whole_sequences: whether minibatches are made of whole sequences, and not of single env steps.
    """

    env_steps: int
    epochs: int
    max_policy_lag: int
    whole_sequences: bool = False

    def train_steps(self, batch_size: int) -> int:
        """Returns the train steps of one iteration."""
        return self.epochs * self.env_steps // batch_size


@dataclasses.dataclass(frozen=True)
class Experience:
    """What an algorithm learns from.

    Attributes:
      length: None if a unit is a transition of `agent.n_step` env steps; otherwise a unit is a sequence of
        this number of env steps of one environment.
      stride: env steps from the start of a sequence to the start of the next one; `length` with an iteration.
      priorities: how units are drawn; None: uniformly.
      iteration: how units are consumed; None: they are drawn again and again.

    Raises:
      ValueError: with an iteration, `length` is None or differs from `stride`.
    """

    length: int | None = None
    stride: int = 1
    priorities: Priorities | None = None
    iteration: Iteration | None = None

    def __post_init__(self) -> None:
        """Checks that iterations consume sequences without overlap."""
        if self.iteration is not None and (self.length is None or self.stride != self.length):
            raise ValueError(f"an iteration takes sequences with stride=length, not {self}")


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
      policy_train_step: int64, the train step of the policy that acted; RANDOM_TRAIN_STEP for random actions.
    """

    observation: "Nest"
    action: "Nest"
    reward: "Nest"
    discount: "Nest"
    next_observation: "Nest"
    policy_train_step: "Nest"


class StoredSequence(NamedTuple):
    """A batch of sequences of T consecutive env steps of one environment, across the ends of episodes.

    Attributes:
      observation, action, next_observation: nests of the environment's specs, [batch, T, ...];
        `next_observation` is the environment's answer, before any reset.
      reward, discount: float32 [batch, T], of single env steps.
      first, last: bool [batch, T], whether an episode begins with this observation, or ends with this env
        step (by a termination, which has a discount of 0, or by a truncation).
      valid: bool [batch, T]; False for an env step that must not be learned from.
      policy_info: nest [batch, T, ...] that the collect policy gave with each action.
      policy_state: nest [batch, ...], the state of the collect policy before the first action.
      policy_train_step, policy_generation: int64 [batch], of the policy that chose the first action.
    """

    observation: "Nest"
    action: "Nest"
    reward: "Nest"
    discount: "Nest"
    next_observation: "Nest"
    first: "Nest"
    last: "Nest"
    valid: "Nest"
    policy_info: "Nest"
    policy_state: "Nest"
    policy_train_step: "Nest"
    policy_generation: "Nest"


Stored = StoredTransition | StoredSequence


def as_transition(stored: StoredTransition) -> "trajectory.Transition":
    """Converts a batch of stored transitions ([batch, ...] tensors).

    Both time steps are MID, never FIRST or LAST: a transition does not cross episodes, and its discount alone
    determines whether the next state has a value.
    """
    import tensorflow as tf
    from tf_agents.trajectories import policy_step, time_step, trajectory

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
