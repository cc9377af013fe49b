"""Adapts environments of gym and gymnasium; their time limits truncate episodes."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from actorlearner.environments.adapter import Adapter, Cast, observation_cast, single_precision
from actorlearner.environments.environment import Nest, Step
from actorlearner.environments.info import named_numbers

if TYPE_CHECKING:
    import gym


class GymAdapter(Adapter):
    """Adapts a `gym.Env` with the interface of gym 0.23 or of later versions, or a `gymnasium.Env`.

    - `step` of gym 0.23 returns (observation, reward, done, info): `done` terminates, unless
      info["TimeLimit.truncated"] is true. Later versions return (observation, reward, terminated,
      truncated, info).
    - `reset` returns the observation, or (observation, info).
    - float64 spaces have float32 specs; observations are cast to them, actions to their spaces.

    Attributes:
      observation_spec, action_spec: nests of array specs; dicts and tuples where the spaces are.
    """

    def __init__(self, environment: "gym.Env", info_keys: Collection[str] = ()) -> None:
        """Reads the spaces; `info_keys` are the keys of the numbers in info that steps report.

        Raises:
          ValueError: TF-Agents has no spec for one of the spaces.
        """
        from tf_agents.environments import gym_wrapper

        specs = gym_wrapper.spec_from_gym_space
        action_space = gym_space(environment.action_space)
        observation_space = gym_space(environment.observation_space)
        super().__init__(
            environment,
            single_precision(specs(observation_space, name="observation")),
            single_precision(specs(action_space, name="action")),
            info_keys,
        )
        self._observation = _observation_cast(observation_space, self.observation_spec)
        self._action = _action_cast(action_space)
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
            truncated = last and info.get("TimeLimit.truncated", False)
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


def gym_space(space: Any) -> "gym.Space":
    """Returns the space of gym that equals a space of gymnasium; other spaces unchanged.

    Raises:
      ValueError: gym has no such space.
    """
    import gym.spaces as own

    kind = type(space).__name__
    if isinstance(space, own.Space):
        return space
    if kind == "Box":
        return own.Box(space.low, space.high, space.shape, space.dtype.type)
    if kind == "Discrete":
        return own.Discrete(int(space.n), start=int(space.start))
    if kind == "MultiDiscrete":
        if np.any(getattr(space, "start", 0)):
            raise ValueError("MultiDiscrete spaces that do not start at 0 are not supported")
        return own.MultiDiscrete(space.nvec, space.dtype.type)
    if kind == "MultiBinary":
        return own.MultiBinary(space.n)
    if kind == "Dict":
        return own.Dict({key: gym_space(child) for key, child in space.spaces.items()})
    if kind == "Tuple":
        return own.Tuple([gym_space(child) for child in space.spaces])
    raise ValueError(f"{kind} spaces are not supported")


def _unwrapped(environment: "gym.Env") -> "gym.Env":
    return getattr(environment, "unwrapped", environment)


def _reset_takes_seed(environment: "gym.Env") -> bool:
    """Whether `reset` takes a `seed` and all wrappers pass it on."""
    import inspect

    layer = environment
    while True:
        parameters = inspect.signature(layer.reset).parameters
        if layer is _unwrapped(environment):
            return "seed" in parameters
        passes_on = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        if not passes_on and "seed" not in parameters:
            return False
        layer = layer.env


def _observation_cast(space: "gym.Space", spec: Nest) -> Cast:
    """Returns `observation_cast` of the spec, in which discrete parts count from 0."""
    import gym

    if isinstance(space, gym.spaces.Dict):
        children = {key: _observation_cast(child, spec[key]) for key, child in space.spaces.items()}
        return lambda value: {key: cast(value[key]) for key, cast in children.items()}
    if isinstance(space, gym.spaces.Tuple):
        casts = [_observation_cast(*pair) for pair in zip(space.spaces, spec, strict=True)]
        return lambda value: tuple(cast(part) for cast, part in zip(casts, value, strict=True))
    cast = observation_cast(spec)
    start = int(getattr(space, "start", 0)) if isinstance(space, gym.spaces.Discrete) else 0
    return (lambda value: cast(value - start)) if start else cast


def _action_cast(space: "gym.Space") -> Callable[[Any], Any]:
    """Returns a function that turns an action of the spec into an action of the space."""
    import gym

    if isinstance(space, gym.spaces.Dict):
        children = {key: _action_cast(child) for key, child in space.spaces.items()}
        return lambda action: {key: cast(action[key]) for key, cast in children.items()}
    if isinstance(space, gym.spaces.Tuple):
        casts = [_action_cast(child) for child in space.spaces]
        return lambda action: tuple(cast(part) for cast, part in zip(casts, action, strict=True))
    if isinstance(space, gym.spaces.Discrete):
        # A plain int, because some environments use actions as keys of a dict. The spec counts from 0.
        start = int(getattr(space, "start", 0))
        return lambda action: int(action) + start
    dtype = space.dtype
    return lambda action: np.asarray(action, dtype)
