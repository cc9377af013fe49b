"""Specs for the spaces of gym and gymnasium, and casts of observations and actions."""

from typing import Any

import numpy as np
from dm_env import specs

from actorlearner.environments.array_specs import Cast, observation_cast
from actorlearner.environments.environment import Nest

_KINDS = ("Box", "Discrete", "MultiDiscrete", "MultiBinary", "Dict", "Tuple")


def space_spec(space: Any, name: str) -> Nest:
    """Returns the nest of array specs of a space; discrete parts count from 0.

    Raises:
      ValueError: the space, or one inside it, has no spec.
    """
    kind = _kind(space)
    if kind == "Dict":
        return {key: space_spec(child, f"{name}/{key}") for key, child in space.spaces.items()}
    if kind == "Tuple":
        return tuple(space_spec(child, f"{name}/tuple_{i}") for i, child in enumerate(space.spaces))
    if kind == "Box":
        low, high = _short(space.low), _short(space.high)
        if low.shape != high.shape:
            low, high = space.low, space.high
        return specs.BoundedArray(space.shape, space.dtype, low, high, name)
    if kind == "Discrete":
        return specs.BoundedArray((), np.int64, 0, space.n - 1, name)
    if kind == "MultiBinary":
        return specs.BoundedArray(space.shape, np.int32, 0, 1, name)
    if np.any(getattr(space, "start", 0)):
        raise ValueError("MultiDiscrete spaces that do not start at 0 are not supported")
    return specs.BoundedArray(space.shape, np.int32, 0, _short(np.asarray(space.nvec) - 1), name)


def space_observation_cast(space: Any, spec: Nest) -> Cast:
    """Returns `observation_cast` of the spec, for observations of the space."""
    kind = _kind(space)
    if kind == "Dict":
        children = {key: space_observation_cast(child, spec[key]) for key, child in space.spaces.items()}
        return lambda value: {key: cast(value[key]) for key, cast in children.items()}
    if kind == "Tuple":
        casts = [space_observation_cast(*pair) for pair in zip(space.spaces, spec, strict=True)]
        return lambda value: tuple(cast(part) for cast, part in zip(casts, value, strict=True))
    cast = observation_cast(spec)
    start = int(getattr(space, "start", 0)) if kind == "Discrete" else 0
    return (lambda value: cast(value - start)) if start else cast


def space_action_cast(space: Any) -> Cast:
    """Returns a function that turns an action of the spec into an action of the space."""
    kind = _kind(space)
    if kind == "Dict":
        children = {key: space_action_cast(child) for key, child in space.spaces.items()}
        return lambda action: {key: cast(action[key]) for key, cast in children.items()}
    if kind == "Tuple":
        casts = [space_action_cast(child) for child in space.spaces]
        return lambda action: tuple(cast(part) for cast, part in zip(casts, action, strict=True))
    if kind == "Discrete":
        # A plain int, because some environments use actions as keys of a dict.
        start = int(getattr(space, "start", 0))
        return lambda action: int(action) + start
    dtype = space.dtype
    return lambda action: np.asarray(action, dtype)


def _kind(space: Any) -> str:
    """Returns the name of the supported space class that a space is an instance of.

    Compares names, so that gym's and gymnasium's spaces are treated alike, and neither has to be imported.
    """
    for base in type(space).__mro__:
        if base.__name__ in _KINDS:
            return base.__name__
    raise ValueError(f"{type(space).__name__} spaces are not supported")


def _short(bound: Any) -> Any:
    """Returns the bounds as one number if all are equal; the arrays of images would be large."""
    first = bound.flat[0]
    return np.asarray(first, bound.dtype) if np.all(bound == first) else bound
