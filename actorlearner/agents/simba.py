"""SimBa, for continuous actions: SAC with residual networks that normalise observations and features.

Details that matter:
- Observations are shifted and scaled by their running mean and deviation (`agent.observation_normalizer`).
- Each network is a linear layer, blocks that add to what they are given (layer normalisation, a layer four
  times as wide with ReLU, and a linear one), and a last layer normalisation.
- The actor is smaller than the critics.
- The rest is SAC's, with two critics always; the paper's weight decay is left out.
"""

import dataclasses
from typing import TYPE_CHECKING

from actorlearner.agents.sac import MaximumEntropyConfig, SacBuilder
from actorlearner.config.schema import AgentConfig
from actorlearner.config.setting import setting

if TYPE_CHECKING:
    from tf_agents.networks import network

    from actorlearner.environments.specs import EnvironmentSpecs


@dataclasses.dataclass(frozen=True)
class SimbaConfig(MaximumEntropyConfig):
    """The keys of SimBa.

    The sizes are those of "SimBa: Simplicity Bias for Scaling Up Parameters in Deep Reinforcement Learning"
    (Lee et al. 2024, https://arxiv.org/abs/2410.09754), but for the critics', which are 512 units wide there.
    """

    name: str = setting(
        "simba", "The algorithm: SAC with SimBa's residual, normalised networks, for continuous actions."
    )
    observation_normalizer: bool = setting(
        True,
        "Shifts and scales each number of an observation to mean 0 and deviation 1, as measured by the "
        "learner and published with the policy, and clips it to -10..10. Images and discrete parts stay.",
    )
    actor_units: int = setting(128, "Width of the actor; its blocks are four times as wide.", at_least=1)
    actor_blocks: int = setting(1, "Residual blocks of the actor.", at_least=1)
    critic_units: int = setting(
        128, "Width of both critics; their blocks are four times as wide.", at_least=1
    )
    critic_blocks: int = setting(2, "Residual blocks of each critic.", at_least=1)


class SimbaBuilder(SacBuilder):
    """Makes SAC's agent with residual networks."""

    config_class: type[AgentConfig] = SimbaConfig

    def actor_network(self, config: AgentConfig, specs: "EnvironmentSpecs") -> "network.Network":
        """Returns the network from an observation to a tanh-squashed normal distribution."""
        from actorlearner.agents.encoder import encoded
        from actorlearner.agents.simba_networks import ResidualActor

        assert isinstance(config, SimbaConfig)
        return encoded(
            specs,
            lambda observation: ResidualActor(
                observation, specs.action, config.actor_units, config.actor_blocks
            ),
        )

    def critic_network(self, config: AgentConfig, specs: "EnvironmentSpecs") -> "network.Network":
        """Returns the network from an observation and an action to Q."""
        from actorlearner.agents.encoder import encoded_critic
        from actorlearner.agents.simba_networks import ResidualCritic

        assert isinstance(config, SimbaConfig)
        return encoded_critic(
            specs,
            lambda observation: ResidualCritic(
                (observation, specs.action), config.critic_units, config.critic_blocks
            ),
        )
