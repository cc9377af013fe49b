"""Adapts environments of gym and gymnasium; their time limits truncate episodes."""

import inspect
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from actorlearner.environments.adapter import Adapter
from actorlearner.environments.array_specs import single_precision
from actorlearner.environments.environment import Nest, Step
from actorlearner.environments.info import named_numbers
from actorlearner.environments.spaces import space_action_cast, space_observation_cast, space_spec

if TYPE_CHECKING:
    import gym


class GymAdapter(Adapter):
    """Adapts a `gym.Env` with the interface of gym 0.23 or of later versions, or a `gymnasium.Env`.

    - `step` of gym 0.23 returns (observation, reward, done, info): `done` terminates, unless
      info["TimeLimit.truncated"] is true. Later versions return (observation, reward, terminated,
      truncated, info).
    - `reset` returns the observation, or (observation, info).
    - The specs of float64 spaces are float32. Observations are cast to the specs, actions to the spaces.

    Attributes:
      observation_spec, action_spec: nests of array specs; dicts and tuples where the spaces are.
    """

    def __init__(self, environment: "gym.Env", info_keys: Collection[str] = ()) -> None:
        """Reads the spaces; `info_keys` are the keys of the numbers in info that steps report.

        Raises:
          ValueError: a space has no spec.
        """
        super().__init__(
            environment,
            single_precision(space_spec(environment.observation_space, "observation")),
            single_precision(space_spec(environment.action_space, "action")),
            info_keys,
        )
        self._observation = space_observation_cast(environment.observation_space, self.observation_spec)
        self._action = space_action_cast(environment.action_space)
        # Bound once: looking it up through gym's wrappers takes longer than the rest of `step`.
        self._env_step = environment.step

    def reset(self) -> Nest:
        """Starts an episode and returns its first observation."""
        answer = self._environment.reset()
        if self._has_info(answer):
            answer = answer[0]
        return self._observation(answer)

    def step(self, action: Nest) -> Step:
        """Takes one env step; `action` has the structure of `action_spec`."""
        answer = self._env_step(self._action(action))
        if len(answer) == 4:
            observation, reward, last, info = answer
            truncated = last and isinstance(info, Mapping) and info.get("TimeLimit.truncated", False)
            terminated = last and not truncated
        else:
            observation, reward, terminated, truncated, info = answer
            last = terminated or truncated
        step = Step(self._observation(observation), float(reward), 0.0 if terminated else 1.0, bool(last))
        return step._replace(info=named_numbers(info, self._info_keys)) if self._info_keys else step

    def seed(self, seed: int) -> bool:
        """Seeds the environment and returns whether it takes a seed.

        In gym 0.23 environments take seeds through `seed`, `reset` or both, so both are tried.
        """
        method: Any = getattr(_unwrapped(self._environment), "seed", None)
        by_method = callable(method)
        by_reset = _reset_takes_seed(self._environment)
        if by_method:  # gymnasium's wrappers have no such method.
            getattr(self._environment, "seed", method)(seed)
        if by_reset:
            self._environment.reset(seed=seed)
        return by_method or by_reset

    def _has_info(self, answer: Any) -> bool:
        """Whether `reset` returned (observation, info) rather than an observation that is a pair."""
        if not (isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], dict)):
            return False
        space = self._environment.observation_space
        return not (isinstance(self.observation_spec, tuple) and space.contains(answer))


def _unwrapped(environment: "gym.Env") -> "gym.Env":
    return getattr(environment, "unwrapped", environment)


def _reset_takes_seed(environment: "gym.Env") -> bool:
    """Whether `reset` takes a `seed` and all wrappers pass it on."""
    layer = environment
    while True:
        try:
            parameters = inspect.signature(layer.reset).parameters
        except ValueError:  # It has no signature, as functions of C.
            return False
        if layer is _unwrapped(environment):
            return "seed" in parameters
        passes_on = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        if not passes_on and "seed" not in parameters:
            return False
        layer = layer.env
