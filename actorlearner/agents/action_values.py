"""Configuration keys, experience and exploration that DQN, C51 and QR-DQN share."""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from actorlearner.agents.builder import AgentBuilder
from actorlearner.agents.experience import Experience, Priorities
from actorlearner.agents.temporal_difference import TemporalDifferenceConfig, shared_arguments
from actorlearner.config.schema import AgentConfig
from actorlearner.config.setting import setting

if TYPE_CHECKING:
    import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class ActionValueConfig(TemporalDifferenceConfig):
    """The keys of every algorithm that learns Q values of discrete actions and explores epsilon-greedily."""

    epsilon_start: float = setting(
        1.0, "Probability of a random action at train step 0.", at_least=0, at_most=1
    )
    epsilon_end: float = setting(
        0.05, "Probability of a random action after the decay.", at_least=0, at_most=1
    )
    epsilon_decay_steps: int = setting(
        10_000, "Train steps in which that probability goes linearly from start to end.", at_least=1
    )
    epsilon_spread: float = setting(
        0.0,
        "Gives each collect actor an exploration of its own: actor i of N acts randomly with the probability "
        "to the power of 1 + epsilon_spread * i / (N - 1). Ape-X (https://arxiv.org/abs/1803.00933) has 7, "
        "and 0.4 for epsilon_start and epsilon_end.",
        at_least=0,
    )
    priority_exponent: float | None = setting(
        None,
        "Draws transitions by priority, in proportion to the error to this power (0.6 is usual). Null: "
        "uniformly, which is much faster.",
        at_least=0,
        at_most=1,
    )
    importance_exponent: float = setting(
        0.4,
        "With priorities, how far the weights in the loss undo their bias: 0 not at all, 1 completely.",
        at_least=0,
        at_most=1,
    )


@dataclasses.dataclass(frozen=True)
class DistributionalConfig(ActionValueConfig):
    """The keys of every algorithm that learns the distribution of returns of each discrete action."""

    layers: list[int] = setting([256, 256], "Units of each hidden layer of the network.", at_least=1)
    learning_rate: float = setting(2.5e-4, "Adam's learning rate.", above=0)
    adam_epsilon: float = setting(0.01 / 32, "Adam's epsilon.", above=0)


ConfigT = TypeVar("ConfigT", bound=ActionValueConfig)


class ActionValueBuilder(AgentBuilder[ConfigT]):
    """The builder of an algorithm with an ActionValueConfig."""

    def experience(self, config: ConfigT) -> Experience:
        """Returns transitions, drawn uniformly or by priority."""
        if config.priority_exponent is None:
            return Experience()
        return Experience(priorities=Priorities(config.priority_exponent, config.importance_exponent))

    def config_of_actor(self, config: ConfigT, index: int, actors: int) -> ConfigT:
        """Returns the configuration of one actor, whose epsilon depends on its index by `epsilon_spread`."""
        power = 1 + config.epsilon_spread * index / max(1, actors - 1)
        start, end = config.epsilon_start**power, config.epsilon_end**power
        return dataclasses.replace(config, epsilon_start=start, epsilon_end=end)


def agent_arguments(config: ActionValueConfig, train_step: "tf.Variable") -> dict[str, Any]:
    """Returns the arguments that agents which value discrete actions have in common."""
    return {
        "epsilon_greedy": _epsilon_schedule(config, train_step),
        "observation_and_action_constraint_splitter": _mask_splitter(config),
        **shared_arguments(config, train_step),
    }


def _epsilon_schedule(config: ActionValueConfig, train_step: "tf.Variable") -> Callable[[], Any]:
    """Returns a function that returns epsilon at the current train step.

    The function reads `train_step` at every call, also in a graph. Actors receive the train step with the
    weights, so all of them follow the same schedule.
    """
    import tensorflow as tf

    epsilon = tf.keras.optimizers.schedules.PolynomialDecay(
        config.epsilon_start, config.epsilon_decay_steps, config.epsilon_end
    )
    return lambda: epsilon(train_step)


def _mask_splitter(config: AgentConfig) -> Callable[[Any], tuple[Any, Any]] | None:
    """Returns TF-Agents' splitter of an observation into itself and its action mask; None without a mask."""
    name = config.action_mask
    return None if name is None else lambda observation: (observation, observation[name])
