"""TQC, for continuous actions: SAC with critics that estimate quantiles; targets drop the largest ones.

Details that matter:
- Each of two critics estimates quantiles of the distribution of returns. A target pools the quantiles of both
  target networks and drops the largest, which controls overestimation in finer steps than SAC's minimum.
- The loss is the quantile regression loss of each quantile to each kept target, with the Huber loss for
  errors up to 1.
- The actor maximises the mean of all quantiles of both critics.
- The rest is SAC's.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from actorlearner.agents.sac import SacBuilder, SacConfig
from actorlearner.config.problems import problem
from actorlearner.config.setting import setting
from actorlearner.errors import ConfigurationError

if TYPE_CHECKING:
    from tf_agents.agents.sac import sac_agent
    from tf_agents.networks import network


@dataclasses.dataclass(frozen=True)
class TqcConfig(SacConfig):
    """The keys of TQC.

    The defaults are those of "Controlling Overestimation Bias with Truncated Mixture of Continuous
    Distributional Quantile Critics" (Kuznetsov et al. 2020, https://arxiv.org/abs/2005.04269), with two
    critics instead of five, as in SB3-Contrib, and smaller networks.
    """

    name: str = setting("tqc", "The algorithm: Truncated Quantile Critics, for continuous actions.")
    td_loss: str = setting(
        "quantile_huber",
        "Loss: quantile regression, quadratic up to errors of 1.",
        choices=("quantile_huber",),
    )
    quantiles: int = setting(25, "Quantiles of the distribution of returns, of each critic.", at_least=1)
    dropped_quantiles: int = setting(
        2,
        "The largest quantiles that targets leave out, for each critic: more if values are overestimated.",
        at_least=0,
    )


class TqcBuilder(SacBuilder):
    """Makes a TqcAgent with SAC's networks."""

    config_class = TqcConfig

    def agent_factory(self, config: SacConfig) -> "Callable[..., sac_agent.SacAgent]":
        """Returns a function that makes a TqcAgent."""
        from actorlearner.agents.tqc_agent import TqcAgent

        assert isinstance(config, TqcConfig)
        if config.dropped_quantiles >= config.quantiles:
            allowed = f"less than agent.quantiles, {config.quantiles}"
            raise ConfigurationError(
                [problem("agent.dropped_quantiles", f"{config.dropped_quantiles} cannot work", allowed)]
            )
        return functools.partial(
            TqcAgent, quantiles=config.quantiles, dropped_quantiles=config.dropped_quantiles
        )

    def critic_factory(self, config: SacConfig) -> "Callable[..., network.Network]":
        """Returns a function that makes a QuantileCriticNetwork."""
        from actorlearner.agents.tqc_agent import QuantileCriticNetwork

        assert isinstance(config, TqcConfig)
        return functools.partial(QuantileCriticNetwork, quantiles=config.quantiles)
