"""Configuration keys, agent arguments and critic network of algorithms with target networks."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from actorlearner.config.schema import AgentConfig
from actorlearner.config.setting import setting

if TYPE_CHECKING:
    import tensorflow as tf
    from tf_agents.networks import network
    from tf_agents.specs import tensor_spec

    from actorlearner.agents.encoder import AgentSpecs


@dataclasses.dataclass(frozen=True)
class TemporalDifferenceConfig(AgentConfig):
    """The keys of every algorithm that learns action values (Q) by bootstrapping from target networks."""

    reward_scale: float = setting(1.0, "Factor on every reward in training.", above=0)
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
        "Maximum norm of the gradient of each variable, applied on each replica before the gradients are "
        "summed. Null: no clipping.",
        above=0,
    )
    debug_summaries: bool = setting(
        False,
        "Write losses, values and actions to TensorBoard as well; nothing with tqc, and with dqn with an "
        "LSTM, whose losses are not TF-Agents'.",
    )
    gradient_summaries: bool = setting(False, "Write gradients and weights to TensorBoard as well.")


def shared_arguments(config: TemporalDifferenceConfig, train_step: "tf.Variable") -> dict[str, Any]:
    """Returns the arguments that the agents of TF-Agents have in common."""
    import tensorflow as tf
    from tf_agents.utils import common

    losses: dict[str, Callable[[Any, Any], Any]] = {
        "squared": tf.math.squared_difference,
        "huber": common.element_wise_huber_loss,
    }
    return {
        "target_update_tau": config.target_update_tau,
        "target_update_period": config.target_update_period,
        "td_errors_loss_fn": losses.get(config.td_loss),  # None: the agent has a loss of its own.
        "gamma": config.gamma,
        "reward_scale_factor": config.reward_scale,
        "gradient_clipping": config.gradient_clipping,
        "debug_summaries": config.debug_summaries,
        "summarize_grads_and_vars": config.gradient_summaries,
        "train_step_counter": train_step,
    }


def scale_to_actions(noise: float, action: "tensor_spec.BoundedTensorSpec") -> Any:
    """Converts halves of the action's range to the action's own units.

    Returns a float32 scalar, or an array like the action: bounds may differ between elements.
    """
    import numpy as np

    return np.asarray(noise * (action.maximum - action.minimum) / 2, np.float32)


def critic_network(
    specs: "AgentSpecs",
    make_critic: "Callable[..., network.Network]",
    joint_layers: Sequence[int],
    observation_layers: Sequence[int] = (),
    action_layers: Sequence[int] = (),
    layer_norm: bool = False,
) -> "network.Network":
    """Returns the network from observation and action to Q; the agents copy it for the second critic.

    Args:
      specs: of the environment.
      make_critic: TF-Agents' CriticNetwork, or a function with the same arguments.
      joint_layers: units of the hidden layers behind the concatenated observation and action.
      observation_layers: units of the layers for the observation alone.
      action_layers: units of the layers for the action alone.
      layer_norm: whether the units of each hidden layer are normalised before ReLU.
    """
    import tensorflow as tf

    from actorlearner.agents.encoder import encoded

    def make(observation: "tf.TensorSpec") -> "network.Network":
        return make_critic(
            (observation, specs.action),
            observation_fc_layer_params=observation_layers,
            action_fc_layer_params=action_layers,
            joint_fc_layer_params=joint_layers,
            activation_fn=_normalized_relu if layer_norm else tf.nn.relu,
            kernel_initializer="glorot_uniform",
            last_kernel_initializer="glorot_uniform",
        )

    return encoded(specs, make, is_critic=True)


def _normalized_relu(units: "tf.Tensor") -> "tf.Tensor":
    """Layer normalisation without learned scale and shift, then ReLU; [batch, units] to [batch, units].

    It is an activation function and not a layer, so that the dense layer can still multiply in bfloat16.
    """
    import tensorflow as tf

    mean, variance = tf.nn.moments(units, axes=[-1], keepdims=True)
    return tf.nn.relu((units - mean) * tf.math.rsqrt(variance + 1e-5))
