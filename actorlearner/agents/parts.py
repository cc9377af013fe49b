"""What several algorithms share: keys, networks, losses, optimisers, and checks of specs."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from actorlearner.agents.builder import AgentBuilder
from actorlearner.agents.experience import Experience, Iteration, Priorities
from actorlearner.config.problems import problem, show
from actorlearner.config.schema import AgentConfig
from actorlearner.config.setting import setting
from actorlearner.errors import ConfigurationError

if TYPE_CHECKING:
    import tensorflow as tf
    from tf_agents.networks import network
    from tf_agents.specs import tensor_spec

    from actorlearner.environments.specs import EnvironmentSpecs


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
    debug_summaries: bool = setting(False, "Write losses, values and actions to TensorBoard as well.")
    gradient_summaries: bool = setting(False, "Write gradients and weights to TensorBoard as well.")


@dataclasses.dataclass(frozen=True)
class ActionValueConfig(TemporalDifferenceConfig):
    """The keys of every algorithm that values discrete actions, and explores with random ones."""

    epsilon_start: float = setting(
        1.0, "Probability of a random action at train step 0.", at_least=0, at_most=1
    )
    epsilon_end: float = setting(
        0.05, "Probability of a random action after the decay.", at_least=0, at_most=1
    )
    epsilon_decay_steps: int = setting(
        10_000, "Train steps in which that probability goes linearly from start to end.", at_least=1
    )
    epsilon_spread: float = setting(
        0.0,
        "Gives each collect actor an exploration of its own: actor i of N acts randomly with the probability "
        "to the power of 1 + epsilon_spread * i / (N - 1). Ape-X (https://arxiv.org/abs/1803.00933) has 7, "
        "and 0.4 for epsilon_start and epsilon_end.",
        at_least=0,
    )
    priority_exponent: float | None = setting(
        None,
        "Draws transitions by priority, in proportion to the error to this power (0.6 is usual). Null: "
        "uniformly, which is much faster.",
        at_least=0,
        at_most=1,
    )
    importance_exponent: float = setting(
        0.4,
        "With priorities, how far the weights in the loss undo their bias: 0 not at all, 1 completely.",
        at_least=0,
        at_most=1,
    )


class ActionValueBuilder(AgentBuilder):
    """The builder of an algorithm with an ActionValueConfig."""

    def experience(self, config: AgentConfig) -> Experience:
        """Returns transitions, drawn uniformly or by priority."""
        assert isinstance(config, ActionValueConfig)
        if config.priority_exponent is None:
            return Experience()
        return Experience(priorities=Priorities(config.priority_exponent, config.importance_exponent))

    def config_of_actor(self, config: AgentConfig, index: int, actors: int) -> AgentConfig:
        """Returns the configuration with the probability of random actions of one actor."""
        assert isinstance(config, ActionValueConfig)
        power = 1 + config.epsilon_spread * index / max(1, actors - 1)
        start, end = config.epsilon_start**power, config.epsilon_end**power
        return dataclasses.replace(config, epsilon_start=start, epsilon_end=end)


@dataclasses.dataclass(frozen=True)
class OnPolicyConfig(AgentConfig):
    """The keys of every algorithm that learns in iterations from what its newest policy did."""

    env_steps_per_iteration: int = setting(
        2_048, "Env steps of one iteration, of all actors together.", at_least=1
    )
    fragment_length: int = setting(
        128,
        "Env steps of one environment that travel together; env_steps_per_iteration must be a multiple, and "
        "should be one of fragment_length x collect.actors x collect.envs_per_actor.",
        at_least=2,
    )
    epochs: int = setting(10, "How often an iteration trains on its env steps.", at_least=1)
    max_policy_lag: int = setting(
        0,
        "How many iterations older than the newest policy the one that acted may be; what is older is "
        "dropped. With 0, actors wait for each new policy, as in the paper; with 1, they collect during "
        "training.",
        at_least=0,
    )


class OnPolicyBuilder(AgentBuilder):
    """The builder of an algorithm with an OnPolicyConfig."""

    def experience(self, config: AgentConfig) -> Experience:
        """Returns sequences that are consumed in iterations."""
        assert isinstance(config, OnPolicyConfig)
        iteration = Iteration(config.env_steps_per_iteration, config.epochs, config.max_policy_lag)
        return Experience(config.fragment_length, config.fragment_length, iteration=iteration)


def epsilon_schedule(config: ActionValueConfig, train_step: "tf.Variable") -> Callable[[], Any]:
    """Returns a function that returns the probability of a random action at the present train step.

    It reads the variable at every call, also in a graph: actors get the train step with the weights, so that
    all explore with the same probability.
    """
    import tensorflow as tf

    epsilon = tf.keras.optimizers.schedules.PolynomialDecay(
        config.epsilon_start, config.epsilon_decay_steps, config.epsilon_end
    )
    return lambda: epsilon(train_step)


def mask_splitter(config: AgentConfig) -> Callable[[Any], tuple[Any, Any]] | None:
    """Returns TF-Agents' splitter of an observation into itself and its action mask; None without a mask."""
    name = config.action_mask
    return None if name is None else lambda observation: (observation, observation[name])


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


def critic_network(
    specs: "EnvironmentSpecs",
    joint_layers: Sequence[int],
    observation_layers: Sequence[int] = (),
    action_layers: Sequence[int] = (),
    make_critic: "Callable[..., network.Network] | None" = None,
) -> "network.Network":
    """Returns the network from observation and action to Q; the agents copy it for the second critic.

    Args:
      specs: of the environment.
      joint_layers: units of the hidden layers behind the concatenated observation and action.
      observation_layers: units of the layers for the observation alone.
      action_layers: units of the layers for the action alone.
      make_critic: TF-Agents' CriticNetwork, which is the default, or one with the same arguments.
    """
    from tf_agents.agents.ddpg.critic_network import CriticNetwork

    from actorlearner.agents.encoder import encoded_critic

    def make(observation: "tf.TensorSpec") -> "network.Network":
        return (make_critic or CriticNetwork)(
            (observation, specs.action),
            observation_fc_layer_params=observation_layers,
            action_fc_layer_params=action_layers,
            joint_fc_layer_params=joint_layers,
            kernel_initializer="glorot_uniform",
            last_kernel_initializer="glorot_uniform",
        )

    return encoded_critic(specs, make)


def adam(
    learning_rate: float, config: AgentConfig, train_step: "tf.Variable", epsilon: float = 1e-7
) -> "tf.keras.optimizers.legacy.Optimizer":
    """Returns Adam with Keras' default decay rates, and with the clipping and the schedule of `config`.

    It is the legacy Keras optimiser, because the newer one creates its slot variables at the first call,
    which fails inside the conditional update of TD3's actor. SAC converts to it in any case.
    """
    import tensorflow as tf

    rate: Any = learning_rate
    steps = config.learning_rate_decay_steps
    if config.learning_rate_decay != "none":
        decays = tf.keras.optimizers.schedules
        linear = config.learning_rate_decay == "linear"
        schedule = (
            decays.PolynomialDecay(learning_rate, steps, 0.0)
            if linear
            else decays.CosineDecay(learning_rate, steps)
        )
        # By train steps, also where an optimiser is used less often.
        rate = lambda: schedule(train_step)  # noqa: E731
    return tf.keras.optimizers.legacy.Adam(rate, epsilon=epsilon, global_clipnorm=config.global_norm)


def create_moments(
    optimizer: "tf.keras.optimizers.legacy.Optimizer", variables: "Sequence[tf.Variable]"
) -> None:
    """Creates Adam's moments of these variables before the first train step.

    TensorFlow would trace the graph of the train step twice if it created variables, which takes seconds.
    """
    optimizer._create_all_weights(variables)


def check_no_strategy(algorithm: str, reason: str) -> None:
    """Refuses a tf.distribute strategy.

    Raises:
      ConfigurationError: this is called in the scope of a strategy.
    """
    import tensorflow as tf

    if tf.distribute.has_strategy():
        line = f"learn.strategy: {algorithm} trains on one device, because {reason}; allowed: default"
        raise ConfigurationError([line])


def check_observation(algorithm: str, specs: "EnvironmentSpecs") -> None:
    """Checks that the encoder takes the observations, see encoder.py.

    Raises:
      ConfigurationError: a part is neither floats, nor a uint8 image, nor bounded integers; or there is none.
    """
    import tensorflow as tf

    from actorlearner.agents.encoder import can_be_encoded

    flat = tf.nest.flatten(specs.observation)
    if not flat or not all(map(can_be_encoded, flat)):
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
        raise _refusal(algorithm, "continuous actions", flat, ": use dqn")
    if len(flat) != 1 or flat[0].dtype != tf.float32 or flat[0].shape.rank != 1:
        raise _refusal(algorithm, "continuous actions in one float vector", flat)
    # Array specs replace infinite bounds by the largest number of their dtype.
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
    if len(flat) != 1 or flat[0].shape.rank != 0 or flat[0].minimum != 0:
        raise _refusal(algorithm, "one discrete action from 0 up", flat)


def check_mask(config: AgentConfig, specs: "EnvironmentSpecs") -> None:
    """Checks that `agent.action_mask` names a part of the observations that fits the actions.

    Raises:
      ConfigurationError: it does not, or the actions are continuous.
    """
    if config.action_mask is None:
        return
    part = specs.observation.get(config.action_mask) if isinstance(specs.observation, dict) else None
    discrete = getattr(specs.action, "dtype", None) is not None and specs.action.dtype.is_integer
    if not discrete or part is None or list(part.shape) != [int(specs.action.maximum) + 1]:
        needs = "the name of a part of a dict observation, with one number for each discrete action"
        wrong = f"{show(config.action_mask)} cannot work"
        raise ConfigurationError([problem("agent.action_mask", wrong, "", needs)])


def check_ppo_action(algorithm: str, specs: "EnvironmentSpecs") -> None:
    """Checks that the action is one integer scalar from 0 up, or one bounded float32 vector.

    Raises:
      ConfigurationError: it is neither.
    """
    import tensorflow as tf

    if any(spec.dtype.is_integer for spec in tf.nest.flatten(specs.action)):
        check_discrete_action(algorithm, specs)
    else:
        continuous_action(algorithm, specs)


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
