"""Adapts TF-Agents environments."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from actorlearner.environments.adapter import Adapter
from actorlearner.environments.array_specs import action_cast, observation_cast, single_precision
from actorlearner.environments.environment import Nest, Step
from actorlearner.environments.info import named_numbers
from actorlearner.errors import ConfigurationError, RunError

if TYPE_CHECKING:
    from tf_agents.environments import py_environment


class PyEnvironmentAdapter(Adapter):
    """Adapts an unbatched `PyEnvironment`.

    Keeps the environment's discounts, with one exception: at gym's time limit, TF-Agents' suites return the
    discount 0, which becomes 1.

    Attributes:
      observation_spec, action_spec: nests of array specs, float64 replaced by float32.
    """

    def __init__(self, environment: "py_environment.PyEnvironment", info_keys: Collection[str] = ()) -> None:
        """Reads the specs; `info_keys` are the keys of the numbers in `get_info()` that steps report.

        Raises:
          ConfigurationError: the environment is batched or has no scalar rewards.
        """
        _check(environment)
        action_spec = environment.action_spec()
        super().__init__(
            environment,
            single_precision(environment.observation_spec()),
            single_precision(action_spec),
            info_keys,
        )
        self._observation = observation_cast(self.observation_spec)
        self._action = action_cast(action_spec)

    def reset(self) -> Nest:
        """Starts an episode and returns its first observation."""
        return self._observation(self._environment.reset().observation)

    def step(self, action: Nest) -> Step:
        """Takes one env step.

        Raises:
          RunError: the environment started a new episode instead of taking the action.
        """
        answer = self._environment.step(self._action(action))
        if answer.is_first():
            raise RunError(
                "environment.name: the environment started a new episode instead of taking a step; end "
                "episodes with a last time step"
            )
        last = bool(answer.is_last())
        discount = float(answer.discount)
        if last and discount == 0.0 and self._truncated_by_gym():
            discount = 1.0
        step = Step(self._observation(answer.observation), float(answer.reward), discount, last)
        return step._replace(info=named_numbers(self._info(), self._info_keys)) if self._info_keys else step

    def seed(self, seed: int) -> bool:
        """Seeds the environment; returns False if it does not support that."""
        try:
            self._environment.seed(seed)
        except NotImplementedError:
            return False
        return True

    def _info(self) -> Any:
        """Returns the info of the last env step; None if the environment has none."""
        try:
            return self._environment.get_info()
        except NotImplementedError:
            return None

    def _truncated_by_gym(self) -> bool:
        """Whether a time limit of a wrapped gym environment ended the episode."""
        info = self._info()
        return isinstance(info, dict) and bool(info.get("TimeLimit.truncated", False))


def is_py_environment(environment: Any) -> bool:
    """Returns whether `environment` is a PyEnvironment of TF-Agents.

    Compares names, because importing the class would import TensorFlow.
    """
    bases = ((base.__module__, base.__name__) for base in type(environment).__mro__)
    return ("tf_agents.environments.py_environment", "PyEnvironment") in bases


def _check(environment: "py_environment.PyEnvironment") -> None:
    if environment.batched:
        raise ConfigurationError(
            [
                f"environment.suite: {type(environment).__name__} is batched (batch size "
                f"{environment.batch_size}); return an environment that is not batched, and set "
                "collect.envs_per_actor to step several of them"
            ]
        )
    reward = environment.reward_spec()
    if getattr(reward, "shape", None) != ():
        raise ConfigurationError(
            [f"environment.suite: {type(environment).__name__} has rewards of {reward}; they must be scalars"]
        )
