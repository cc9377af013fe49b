"""Array specs, the shapes, dtypes and bounds of an environment's arrays, and casts of arrays to them.

They are dm_env's: TF-Agents' would import TensorFlow into the process of every environment, which takes
seconds and hundreds of MiB.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from dm_env import specs

from actorlearner.environments.environment import Nest
from actorlearner.errors import RunError

Cast = Callable[[Any], Nest]

_SINGLE = {
    "float64": "float32",
    **dict.fromkeys(("bool", "int8", "int16", "uint16"), "int32"),
    **dict.fromkeys(("uint32", "uint64"), "int64"),
}
"""The names of dtypes that others replace."""


def single_precision(spec: Nest) -> Nest:
    """Converts a nest of any library's specs to dm_env's with dtypes of TF-Agents; mappings become dicts.

    TF-Agents' networks refuse float64, which would also double the size of replay, and bool and all integers
    but uint8, int32 and int64. Bounds of float64 are rounded inwards, so that an action inside the float32
    bounds is inside the float64 bounds.
    """
    if isinstance(spec, Mapping):
        return {key: single_precision(child) for key, child in spec.items()}
    if isinstance(spec, (list, tuple)):
        return tuple(single_precision(child) for child in spec)
    return _single_precision_leaf(spec)


def _single_precision_leaf(spec: Any) -> specs.Array:
    given = np.dtype(spec.dtype)
    dtype = np.dtype(_SINGLE.get(given.name, given.name))
    if given == np.bool_:
        return specs.BoundedArray(spec.shape, dtype, 0, 1, spec.name)
    if not (hasattr(spec, "minimum") and hasattr(spec, "maximum")):
        return specs.Array(spec.shape, dtype, spec.name)
    minimum, maximum = spec.minimum, spec.maximum
    if given == np.float64:
        minimum = _rounded(minimum, np.inf, lambda rounded, exact: rounded < exact)
        maximum = _rounded(maximum, -np.inf, lambda rounded, exact: rounded > exact)
        # Both bounds of a fixed value, such as 0.1, may lie outside after rounding.
        maximum = np.maximum(minimum, maximum)
    return specs.BoundedArray(spec.shape, dtype, minimum, maximum, spec.name)


def _rounded(bound: Any, towards: float, outside: Callable[[Any, Any], Any]) -> Any:
    """Rounds float64 bounds to float32; bounds that land outside move one ulp `towards` the inside."""
    with np.errstate(over="ignore"):  # The largest float64 means "no bound": infinity.
        rounded = np.asarray(bound, np.float32)
    no_bound = np.isinf(rounded)
    inner = np.nextafter(rounded, np.float32(towards))
    return np.where(outside(rounded, np.asarray(bound)) & ~no_bound, inner, rounded)


def observation_cast(spec: Nest) -> Cast:
    """Returns a function that copies an observation into new arrays of `spec`'s dtypes.

    It always copies, because environments may write the next observation into the same buffer. It raises
    RunError if an array's shape differs from the spec's.
    """
    return _nested(spec, _checked_copy)


def action_cast(spec: Nest) -> Cast:
    """Returns a function that casts an action to `spec`'s dtypes, without a copy if possible."""

    def leaf(leaf_spec: specs.Array) -> Cast:
        dtype = leaf_spec.dtype
        return lambda value: np.asarray(value, dtype)

    return _nested(spec, leaf)


def _nested(spec: Nest, leaf: Callable[[Any], Cast]) -> Cast:
    """Builds the cast of a nest once, so that env steps do not traverse specs."""
    if isinstance(spec, Mapping):
        children = {key: _nested(child, leaf) for key, child in spec.items()}
        return lambda value: {key: cast(value[key]) for key, cast in children.items()}
    if isinstance(spec, (list, tuple)):
        casts = [_nested(child, leaf) for child in spec]
        return lambda value: tuple(cast(part) for cast, part in zip(casts, value, strict=True))
    return leaf(spec)


def _checked_copy(spec: specs.Array) -> Cast:
    dtype, shape, name = spec.dtype, tuple(spec.shape), spec.name or "observation"

    def cast(value: Any) -> Nest:
        result = np.array(value, dtype)
        if result.shape != shape:
            raise RunError(
                f"environment.name: the environment returned {name} with shape {list(result.shape)}, "
                f"but its observation space says {list(shape)}"
            )
        return result

    return cast
