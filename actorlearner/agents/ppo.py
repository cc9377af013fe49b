"""PPO with a clipped objective, for continuous and for discrete actions: on-policy, with several epochs.

Details that matter:
- Each iteration takes `env_steps_per_iteration` env steps by one policy, and trains `epochs` times on them in
  shuffled minibatches; a train step is one minibatch.
- Advantages are estimated with `trace_decay` (GAE); an episode that a time limit cut off is bootstrapped from
  its last state, see on_policy_agent.py. They are normalised in each minibatch.
- The standard deviation of continuous actions is a variable of its own, independent of the state. Actions
  outside of their bounds are clipped for the environment, and kept as they were for the loss.
- `noise_interval` makes the standard deviation depend on the state, and noise smooth, see smooth_noise.py.
- With an LSTM (`lstm_units`), see recurrent_ppo_agent.py.
- `reward_normalizer` divides rewards by the running standard deviation of discounted sums of them, so that
  values have the same scale in every task.
"""

import dataclasses
from typing import TYPE_CHECKING

from actorlearner.agents.checks import check_discrete_action, check_observation, continuous_action
from actorlearner.agents.experience import Experience
from actorlearner.agents.on_policy import OnPolicyBuilder, OnPolicyConfig
from actorlearner.agents.optimizer import adam
from actorlearner.config.problems import problem
from actorlearner.config.setting import setting
from actorlearner.errors import ConfigurationError

if TYPE_CHECKING:
    import tensorflow as tf
    from tf_agents.agents import tf_agent
    from tf_agents.agents.ppo import ppo_policy
    from tf_agents.networks import network

    from actorlearner.agents.encoder import AgentSpecs
    from actorlearner.environments.environment import Nest
    from actorlearner.environments.specs import EnvironmentSpecs


@dataclasses.dataclass(frozen=True)
class PpoConfig(OnPolicyConfig):
    """The keys of PPO.

    The defaults are those of "Proximal Policy Optimization Algorithms" (Schulman et al. 2017,
    https://arxiv.org/abs/1707.06347, table 3) for continuous actions.
    """

    name: str = setting("ppo", "The algorithm: Proximal Policy Optimisation, for one action.")
    trace_decay: float = setting(0.95, "Lambda of the advantages.", at_least=0, at_most=1)
    clipping: float = setting(
        0.2, "How far the ratio of action probabilities may move from 1 before it is clipped.", above=0
    )
    value_loss: float = setting(0.5, "Weight of the value function's loss.", at_least=0)
    entropy: float = setting(0.0, "Weight of the policy's entropy.", at_least=0)
    actor_layers: list[int] = setting([64, 64], "Units of each hidden layer of the actor.", at_least=1)
    value_layers: list[int] = setting(
        [64, 64], "Units of each hidden layer of the value network; not used with an LSTM.", at_least=1
    )
    learning_rate: float = setting(3e-4, "Adam's learning rate.", above=0)
    global_norm: float | None = setting(
        0.5, "Maximum norm of all gradients together. Null: no clipping.", above=0
    )
    lstm_units: int | None = setting(
        None,
        "Units of an LSTM behind the actor's hidden layers, which values then share; minibatches are "
        "whole fragments. Null: none.",
        at_least=1,
    )
    initial_std: float = setting(
        1.0, "Standard deviation of continuous actions at the beginning, in halves of their range.", above=0
    )
    noise_interval: int | None = setting(
        None,
        "Env steps for which the noise of continuous actions stays the same function of the state, so that "
        "actions change smoothly (gSDE). initial_std is then an upper bound. Null: new noise in each env "
        "step, independent of the state.",
        at_least=1,
    )
    reward_normalizer: bool = setting(
        False,
        "Divides rewards by the standard deviation of returns, which are summed within a fragment: "
        "fragment_length should be at least 1 / (1 - gamma).",
    )
    debug_summaries: bool = setting(
        False, "Write losses, values and actions to TensorBoard as well; nothing with an LSTM."
    )


class PpoBuilder(OnPolicyBuilder[PpoConfig]):
    """Makes TF-Agents' PPO agent, trained on prepared minibatches."""

    config_class = PpoConfig

    def experience(self, config: PpoConfig) -> Experience:
        """Returns sequences, consumed in iterations; with an LSTM, minibatches are whole sequences."""
        experience = super().experience(config)
        assert experience.iteration is not None
        whole = config.lstm_units is not None
        iteration = dataclasses.replace(experience.iteration, whole_sequences=whole)
        return dataclasses.replace(experience, iteration=iteration)

    def policy_specs(self, config: PpoConfig, specs: "EnvironmentSpecs") -> "tuple[Nest, Nest]":
        """Returns the specs of PolicyInfo and of the policy's state: the LSTM's, the noise's, or none."""
        import tensorflow as tf

        from actorlearner.agents.lstm import state_spec
        from actorlearner.agents.ppo_agent import PolicyInfo
        from actorlearner.agents.recurrent_ppo_agent import STATE
        from actorlearner.agents.smooth_noise import noise_spec

        _check_action(config, specs)
        action = tf.TensorSpec(specs.action.shape, specs.action.dtype)
        state: Nest = ()
        if config.lstm_units is not None:
            state = {STATE: state_spec(config.lstm_units)}
        elif config.noise_interval is not None:
            state = noise_spec(config.actor_layers[-1], int(specs.action.shape[0]))
        return PolicyInfo(action, tf.TensorSpec([], tf.float32)), state

    def make_agent(
        self, config: PpoConfig, specs: "AgentSpecs", train_step: "tf.Variable"
    ) -> "tf_agent.TFAgent":
        """Makes the agent for all encoded observations, and one integer action or bounded float vector."""
        from actorlearner.agents.ppo_agent import CollectPolicy, PpoAgent
        from actorlearner.agents.recurrent_ppo_agent import RecurrentPpoAgent
        from actorlearner.agents.smooth_noise import PpoSmoothNoise

        check_observation("ppo", specs)
        _check_action(config, specs)
        interval = config.noise_interval
        optimizer = adam(config.learning_rate, config, train_step, epsilon=1e-5)
        actor_network, value_network = _networks(specs, config)

        def make_collect_policy(policy: "ppo_policy.PPOPolicy") -> CollectPolicy:
            return CollectPolicy(policy) if interval is None else PpoSmoothNoise(policy, interval)

        agent_class = PpoAgent if config.lstm_units is None else RecurrentPpoAgent
        return agent_class(
            specs.time_step,
            specs.action,
            optimizer,
            actor_network,
            value_network,
            importance_ratio_clipping=config.clipping,
            lambda_value=config.trace_decay,
            discount_factor=config.gamma,
            entropy_regularization=config.entropy,
            value_pred_loss_coef=config.value_loss,
            num_epochs=1,
            use_gae=True,
            normalize_rewards=False,
            normalize_observations=False,
            aggregate_losses_across_replicas=True,
            debug_summaries=config.debug_summaries,
            train_step_counter=train_step,
            make_collect_policy=make_collect_policy,
            reward_normalizer=config.reward_normalizer,
        )


def _networks(specs: "AgentSpecs", config: PpoConfig) -> "tuple[network.Network, network.Network]":
    """Returns the networks of the actor and of values; with an LSTM they share all but the last layer."""
    from actorlearner.agents.ppo_networks import ActorNetwork, ValueNetwork, make_body

    actor = ActorNetwork(
        specs,
        config.actor_layers,
        initial_std=config.initial_std,
        lstm_units=config.lstm_units,
        smooth_noise=config.noise_interval is not None,
        mask=config.action_mask,
    )
    if config.lstm_units is None:
        return actor, ValueNetwork(specs.observation, make_body(specs, config.value_layers))
    return actor, ValueNetwork(specs.observation, actor.body, actor.state_spec)


def _check_action(config: PpoConfig, specs: "EnvironmentSpecs") -> None:
    """Refuses all actions but one integer from 0 up, or one bounded float vector; and noise that cannot work.

    Smooth noise needs continuous actions and hidden layers, and cannot be combined with an LSTM.
    """
    import tensorflow as tf

    smooth = config.noise_interval is not None
    if not smooth and any(spec.dtype.is_integer for spec in tf.nest.flatten(specs.action)):
        check_discrete_action("ppo", specs)
    else:
        continuous_action("ppo with agent.noise_interval" if smooth else "ppo", specs)
    if smooth and (config.lstm_units is not None or not config.actor_layers):
        allowed = "null, with agent.lstm_units or without agent.actor_layers"
        raise ConfigurationError(
            [problem("agent.noise_interval", f"{config.noise_interval} cannot work", allowed)]
        )
