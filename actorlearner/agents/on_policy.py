"""Configuration keys and experience of on-policy algorithms, without importing TensorFlow."""

import dataclasses
from typing import TypeVar

from actorlearner.agents.builder import AgentBuilder
from actorlearner.agents.experience import Experience, Iteration
from actorlearner.config.schema import AgentConfig
from actorlearner.config.setting import setting


@dataclasses.dataclass(frozen=True)
class OnPolicyConfig(AgentConfig):
    """The keys of every algorithm that trains in iterations on experience of its newest policy."""

    env_steps_per_iteration: int = setting(
        2_048, "Env steps of one iteration, of all actors together.", at_least=1
    )
    fragment_length: int = setting(
        128,
        "Env steps of one environment that an actor sends together. env_steps_per_iteration must be a "
        "multiple of it, and of fragment_length x collect.actors x collect.envs_per_actor if both keys of "
        "collect are given.",
        at_least=2,
    )
    epochs: int = setting(10, "How often an iteration trains on its env steps.", at_least=1)
    max_policy_lag: int = setting(
        0,
        "Most iterations by which the policy that acted may be older than the newest policy; experience of "
        "older policies is dropped. With 0, actors wait for each new policy, as in the paper; with 1, they "
        "collect during training.",
        at_least=0,
    )


ConfigT = TypeVar("ConfigT", bound=OnPolicyConfig)


class OnPolicyBuilder(AgentBuilder[ConfigT]):
    """The builder of an algorithm with an OnPolicyConfig."""

    def experience(self, config: ConfigT) -> Experience:
        """Returns sequences that are consumed in iterations."""
        iteration = Iteration(config.env_steps_per_iteration, config.epochs, config.max_policy_lag)
        return Experience(config.fragment_length, config.fragment_length, iteration=iteration)
