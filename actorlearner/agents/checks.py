"""Checks that an environment and a strategy suit an algorithm; each error names what the algorithm needs."""

from typing import TYPE_CHECKING, Any

from actorlearner.config.problems import problem, show
from actorlearner.config.schema import AgentConfig
from actorlearner.errors import ConfigurationError

if TYPE_CHECKING:
    from tf_agents.specs import tensor_spec

    from actorlearner.agents.encoder import AgentSpecs
    from actorlearner.environments.specs import EnvironmentSpecs


def check_no_strategy(algorithm: str, reason: str) -> None:
    """Refuses a tf.distribute strategy.

    Raises:
      ConfigurationError: this is called in the scope of a strategy.
    """
    import tensorflow as tf

    if tf.distribute.has_strategy():
        line = f"learn.strategy: {algorithm} trains on one device, because {reason}; allowed: default"
        raise ConfigurationError([line])


def check_observation(algorithm: str, specs: "AgentSpecs") -> None:
    """Checks that the encoder takes the observations, see encoder.py; the user's own layer takes all of them.

    Raises:
      ConfigurationError: a part is neither floats, nor a uint8 image, nor bounded integers; or there is none.
    """
    import tensorflow as tf

    from actorlearner.agents.encoder import can_be_encoded

    flat = tf.nest.flatten(specs.observation)
    if not flat or not (specs.own_encoder or all(map(can_be_encoded, flat))):
        needs = "observations of floats, uint8 images [height, width, channels] and bounded integers"
        raise _refusal(algorithm, needs, flat)


def continuous_action(algorithm: str, specs: "EnvironmentSpecs") -> "tensor_spec.BoundedTensorSpec":
    """Returns the only action spec: a bounded float32 vector.

    Raises:
      ConfigurationError: the actions are nested, integers, not a vector, or unbounded.
    """
    import numpy as np
    import tensorflow as tf

    flat = tf.nest.flatten(specs.action)
    if all(spec.dtype.is_integer for spec in flat):
        one_number = len(flat) == 1 and flat[0].shape.rank == 0
        raise _refusal(algorithm, "continuous actions", flat, ": use dqn" if one_number else "")
    nested = tf.nest.is_nested(specs.action)
    if nested or flat[0].dtype != tf.float32 or flat[0].shape.rank != 1:
        raise _refusal(algorithm, "continuous actions in one float vector", flat)
    # TF-Agents' specs replace infinite bounds by the largest number of their dtype.
    largest = np.finfo(np.float32).max
    if np.any(flat[0].minimum <= -largest) or np.any(flat[0].maximum >= largest):
        raise _refusal(algorithm, "continuous actions with finite bounds", flat)
    return flat[0]


def check_discrete_action(algorithm: str, specs: "EnvironmentSpecs") -> None:
    """Checks that the action is one integer scalar from 0 up.

    Raises:
      ConfigurationError: the actions are nested, continuous, not a scalar, or do not start at 0.
    """
    import tensorflow as tf

    flat = tf.nest.flatten(specs.action)
    if not any(spec.dtype.is_integer for spec in flat):
        raise _refusal(algorithm, "one discrete action", flat, ": use sac or td3")
    if tf.nest.is_nested(specs.action) or flat[0].shape.rank != 0 or flat[0].minimum != 0:
        raise _refusal(algorithm, "one discrete action from 0 up", flat)


def check_mask(config: AgentConfig, specs: "EnvironmentSpecs") -> None:
    """Checks that `agent.action_mask` names a part of the observations that fits the actions.

    Raises:
      ConfigurationError: it does not, or the actions are continuous.
    """
    import tensorflow as tf

    if config.action_mask is None:
        return
    part = specs.observation.get(config.action_mask) if isinstance(specs.observation, dict) else None
    action = specs.action
    discrete = not tf.nest.is_nested(action) and action.dtype.is_integer and action.shape.rank == 0
    if not discrete or part is None or list(part.shape) != [int(action.maximum) + 1]:
        needs = "the name of a part of a dict observation, with one number for each discrete action"
        wrong = f"{show(config.action_mask)} cannot work"
        raise ConfigurationError([problem("agent.action_mask", wrong, needs)])


def _refusal(algorithm: str, needs: str, flat_specs: list[Any], hint: str = "") -> ConfigurationError:
    specs = ", ".join(map(_describe, flat_specs)) or "empty"
    return ConfigurationError(
        [f"agent.name: {algorithm} needs {needs}; this environment's are {specs}{hint}"]
    )


def _describe(spec: Any) -> str:
    """Returns dtype, shape and bounds, as in `float32[3] in -1..1`."""
    from tf_agents.specs import tensor_spec

    shape = list(spec.shape) if spec.shape.rank else ""
    if not isinstance(spec, tensor_spec.BoundedTensorSpec):
        return f"{spec.dtype.name}{shape}"
    return f"{spec.dtype.name}{shape} in {_number(spec.minimum)}..{_number(spec.maximum)}"


def _number(bound: Any) -> str:
    """Returns a bound as text: one number, or the extremes if it differs between elements."""
    import numpy as np

    low, high = np.min(bound), np.max(bound)
    return f"{low:g}" if low == high else f"[{low:g} to {high:g}]"
