"""What the algorithms here share: common keys, checks of the specs, losses and optimisers."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from actorlearner.config.schema import AgentConfig
from actorlearner.config.setting import setting
from actorlearner.errors import ConfigurationError

if TYPE_CHECKING:
    import tensorflow as tf
    from tf_agents.specs import tensor_spec

    from actorlearner.environments.specs import EnvironmentSpecs

LossFunction = Callable[[Any, Any], Any]


@dataclasses.dataclass(frozen=True)
class TemporalDifferenceConfig(AgentConfig):
    """The keys of every algorithm that learns action values (Q) by bootstrapping from target networks."""

    reward_scale: float = setting(1.0, "Factor on every reward that is trained on.", above=0)
    td_loss: str = setting(
        "squared",
        "Loss of a temporal-difference error: squared, or huber (linear beyond an error of 1).",
        choices=("squared", "huber"),
    )
    target_update_tau: float = setting(
        0.005,
        "Weight of the trained networks in an update of the target networks; 1 copies them.",
        above=0,
        at_most=1,
    )
    target_update_period: int = setting(
        1, "Train steps between two updates of the target networks.", at_least=1
    )
    gradient_clipping: float | None = setting(
        None,
        "Norm that the gradient of each variable is clipped to, on each replica before they are added up. "
        "Null: not clipped.",
        above=0,
    )
    debug_summaries: bool = setting(
        False, "Whether losses, values and actions are summarised for TensorBoard as well."
    )
    gradient_summaries: bool = setting(
        False, "Whether gradients and weights are summarised for TensorBoard as well."
    )


def td_loss_function(name: str) -> LossFunction:
    """Returns the elementwise loss (targets, predictions) -> losses, float32 [B], of a `td_loss` key."""
    import tensorflow as tf
    from tf_agents.utils import common

    functions: dict[str, LossFunction] = {
        "squared": tf.math.squared_difference,
        "huber": common.element_wise_huber_loss,
    }
    return functions[name]


def adam(learning_rate: float) -> "tf.keras.optimizers.legacy.Optimizer":
    """Returns Adam with Keras' default moments.

    It is the legacy Keras optimiser, because the newer one creates its slot variables where it is first
    called, which fails inside the conditional update of TD3's actor. SAC converts to it in any case.
    """
    import tensorflow as tf

    return tf.keras.optimizers.legacy.Adam(learning_rate=learning_rate)


def create_moments(
    optimizer: "tf.keras.optimizers.legacy.Optimizer", variables: "Sequence[tf.Variable]"
) -> None:
    """Creates Adam's moments of these variables, which the first train step would do otherwise.

    TensorFlow traces a graph that creates variables a second time, which takes seconds.
    """
    optimizer._create_all_weights(variables)


def check_vector_observation(algorithm: str, specs: "EnvironmentSpecs") -> None:
    """Refuses observations that the feed-forward networks cannot take: they need one float vector.

    Raises:
      ConfigurationError: the observation is nested, or not a float32 vector.
    """
    import tensorflow as tf

    flat = tf.nest.flatten(specs.observation)
    if len(flat) == 1 and flat[0].dtype == tf.float32 and flat[0].shape.rank == 1:
        return
    raise ConfigurationError(
        [
            f"agent.name: {algorithm} needs observations of one float vector; this environment's are "
            f"{_describe(flat)}: flatten them in an environment of your own (environment.suite: "
            "module:callable)"
        ]
    )


def continuous_action(algorithm: str, specs: "EnvironmentSpecs") -> "tensor_spec.BoundedTensorSpec":
    """Returns the only action spec: a bounded float32 vector.

    Raises:
      ConfigurationError: the actions are nested, integers, not a vector, or unbounded.
    """
    import numpy as np
    import tensorflow as tf

    flat = tf.nest.flatten(specs.action)
    needs = f"agent.name: {algorithm} needs continuous actions"
    if all(spec.dtype.is_integer for spec in flat):
        raise ConfigurationError([f"{needs}; this environment's are {_describe(flat)}: use dqn"])
    if len(flat) != 1 or flat[0].dtype != tf.float32 or flat[0].shape.rank != 1:
        raise ConfigurationError([f"{needs} in one float vector; this environment's are {_describe(flat)}"])
    spec = flat[0]
    # Array specs replace infinite bounds by the largest number of their dtype.
    unbounded = np.finfo(np.float32).max
    if np.any(spec.minimum <= -unbounded) or np.any(spec.maximum >= unbounded):
        raise ConfigurationError([f"{needs} with finite bounds; this environment's are {_describe(flat)}"])
    return spec


def discrete_action(algorithm: str, specs: "EnvironmentSpecs") -> "tensor_spec.BoundedTensorSpec":
    """Returns the only action spec: an integer scalar from 0 up.

    Raises:
      ConfigurationError: the actions are nested, continuous, not a scalar, or do not start at 0.
    """
    import tensorflow as tf

    flat = tf.nest.flatten(specs.action)
    needs = f"agent.name: {algorithm} needs one discrete action"
    if not any(spec.dtype.is_integer for spec in flat):
        raise ConfigurationError([f"{needs}; this environment's are {_describe(flat)}: use sac or td3"])
    if len(flat) != 1 or flat[0].shape.rank != 0 or flat[0].minimum != 0:
        raise ConfigurationError([f"{needs} from 0 up; this environment's are {_describe(flat)}"])
    return flat[0]


def _describe(flat_specs: list[Any]) -> str:
    """Names dtypes, shapes and bounds, as in `float32[3] in -1..1`."""
    words = []
    for spec in flat_specs:
        shape = list(spec.shape) if spec.shape.rank else ""
        bounds = f" in {_number(spec.minimum)}..{_number(spec.maximum)}" if _bounded(spec) else ""
        words.append(f"{spec.dtype.name}{shape}{bounds}")
    return ", ".join(words) or "empty"


def _bounded(spec: Any) -> bool:
    from tf_agents.specs import tensor_spec

    return isinstance(spec, tensor_spec.BoundedTensorSpec)


def _number(bound: Any) -> str:
    """Formats a bound; one that differs between elements by its extremes."""
    import numpy as np

    low, high = np.min(bound), np.max(bound)
    return f"{low:g}" if low == high else f"[{low:g} to {high:g}]"
