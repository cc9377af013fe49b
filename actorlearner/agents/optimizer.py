"""Adam, as all algorithms use it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from actorlearner.config.schema import AgentConfig

if TYPE_CHECKING:
    import tensorflow as tf


def adam(
    learning_rate: float, config: AgentConfig, train_step: "tf.Variable", epsilon: float = 1e-7
) -> "tf.keras.optimizers.legacy.Optimizer":
    """Returns Adam with Keras' default decay rates, and with the clipping and the schedule of `config`.

    It is the legacy Keras optimiser, because the newer one creates its slot variables at the first call,
    which fails inside the conditional update of TD3's actor. SAC converts to the legacy one anyway.
    """
    import tensorflow as tf

    rate: Any = learning_rate
    if config.learning_rate_decay != "none":
        steps = config.learning_rate_decay_steps
        assert steps is not None, "make_agent sets it"
        decays = tf.keras.optimizers.schedules
        linear = config.learning_rate_decay == "linear"
        schedule = (
            decays.PolynomialDecay(learning_rate, steps, 0.0)
            if linear
            else decays.CosineDecay(learning_rate, steps)
        )
        # By train steps, not by updates: TD3 updates its actor less often than once in a train step.
        rate = lambda: schedule(train_step)  # noqa: E731
    return tf.keras.optimizers.legacy.Adam(rate, epsilon=epsilon, global_clipnorm=config.global_norm)


def create_moments(
    optimizer: "tf.keras.optimizers.legacy.Optimizer", variables: "Sequence[tf.Variable]"
) -> None:
    """Creates Adam's moments of these variables before the first train step.

    TensorFlow would trace the graph of the train step twice if it created variables, which takes seconds.
    """
    optimizer._create_all_weights(variables)
