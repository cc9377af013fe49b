"""Resets of the networks while replay is kept, at the train steps of `agent.reset_at`.

Networks that were trained on little and early experience learn worse from what comes later. New ones, trained
on the same replay, soon return more. ("The Primacy Bias in Deep Reinforcement Learning", Nikishin et al.
2022, https://arxiv.org/abs/2205.07802.)
"""

import logging

from actorlearner.agents.make import AgentParts
from actorlearner.learning.group import Group, variables_of

_log = logging.getLogger(__name__)


class Resets:
    """Gives the agent's variables the values that they have now again, at certain train steps.

    These are the networks, the target networks, the optimisers and SAC's temperature. The train step and the
    statistics of the observation normaliser are kept.

    Attributes:
      at: the train steps.
    """

    def __init__(self, parts: AgentParts, group: Group) -> None:
        """Copies the values of an agent that was just made; nothing is copied without a reset."""
        self.at = parts.reset_at
        self._parts = parts
        self._group = group
        kept = [parts.train_step, *(parts.normalizer.variables if parts.normalizer else ())]
        kept_ids = {id(variable) for variable in kept}
        variables = variables_of(parts.agent) if self.at else ()
        self._initial = [(v, v.numpy()) for v in variables if id(v) not in kept_ids]

    def apply(self, step: int) -> None:
        """Resets the variables if this is one of the train steps; call it before the train step is taken.

        A learner that restores a checkpoint of this train step resets them again, which changes nothing. In a
        group, all learners have to call this.
        """
        if step not in self.at:
            return
        with self._group.strategy.scope():
            for variable, value in self._initial:
                variable.assign(value)
        self._group.share(self._parts.agent, self._parts.train_step)
        _log.info("train step %d: the networks and their optimisers start afresh (agent.reset_at)", step)
