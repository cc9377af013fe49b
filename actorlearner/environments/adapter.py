"""What the adapters of gym and of TF-Agents' environments share: arrays that fit their specs."""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from actorlearner.environments.environment import Nest
from actorlearner.environments.rendering import Frame, frame_rate, render
from actorlearner.errors import RunError

if TYPE_CHECKING:
    from tf_agents.specs import array_spec


class Adapter:
    """Everything of an adapted environment but `reset` and `step`, in which the libraries differ.

    Attributes:
      observation_spec, action_spec: nests of array specs.
    """

    def __init__(
        self, environment: Any, observation_spec: Nest, action_spec: Nest, info_keys: Collection[str] = ()
    ) -> None:
        """Adapts `environment`: a gym.Env, old or new, or a PyEnvironment.

        Args:
          environment: the environment.
          observation_spec: nest of array specs.
          action_spec: nest of array specs.
          info_keys: keys of the numbers in its info that steps report.
        """
        self._info_keys = info_keys
        self.observation_spec = observation_spec
        self.action_spec = action_spec
        self._environment = environment

    def close(self) -> None:
        """Frees the simulator."""
        self._environment.close()

    def render(self) -> Frame:
        """Renders the current state; raises RenderError if the environment cannot."""
        return render(self._environment)

    @property
    def frame_rate(self) -> float | None:
        """Env steps per simulated second; None if unknown."""
        return frame_rate(self._environment)


Cast = Callable[[Any], Nest]


def single_precision(spec: Nest) -> Nest:
    """Returns a nest of array specs with float64 replaced by float32, and mappings by plain dicts.

    Networks compute in float32 and TF-Agents' networks refuse float64, which would also double the size of
    replay. Bounds are rounded inwards: an action inside the float32 bounds is inside the float64 bounds.
    """
    if isinstance(spec, Mapping):
        return {key: single_precision(child) for key, child in spec.items()}
    if isinstance(spec, (list, tuple)):
        return tuple(single_precision(child) for child in spec)
    return _single_precision_leaf(spec) if spec.dtype == np.float64 else spec


def _single_precision_leaf(spec: "array_spec.ArraySpec") -> "array_spec.ArraySpec":
    from tf_agents.specs import array_spec

    if not isinstance(spec, array_spec.BoundedArraySpec):
        return array_spec.ArraySpec(spec.shape, np.float32, spec.name)
    minimum = _rounded(spec.minimum, np.inf, lambda rounded, exact: rounded < exact)
    maximum = _rounded(spec.maximum, -np.inf, lambda rounded, exact: rounded > exact)
    return array_spec.BoundedArraySpec(spec.shape, np.float32, minimum, maximum, spec.name)


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

    def leaf(leaf_spec: "array_spec.ArraySpec") -> Cast:
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


def _checked_copy(spec: "array_spec.ArraySpec") -> Cast:
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
