"""Limits how many env steps a collect actor takes with each policy of an on-policy algorithm."""

import math
import time
from collections.abc import Callable

from actorlearner.agents.experience import Iteration

_MIN_PATIENCE_S = 1.0
_FIRST_PATIENCE_S = 30.0
"""Least seconds that an actor waits before a takeover until the third policy: the usual time is unknown."""

_FADING = 0.75
"""In an interval with a takeover, the usual time falls to this fraction of itself at most. The next interval
without a takeover sets it again."""

_PATIENCE = 2.0
"""Times the usual time between two policies after which an actor takes over from one that may have ended."""


class Pace:
    """Gives each policy's env steps to the actors in equal shares.

    An actor that has collected its share waits for the next policy. If it waits for twice the usual time
    between two policies, another actor may have died: each remaining actor then collects its part of one
    share (a takeover), and does so again after each further wait of that length. So no actor waits for ever
    when others join, leave or die, and no actor polls the replay server for this.

    Attributes:
      surplus: env steps that all actors together collect with each policy beyond an iteration.
    """

    def __init__(
        self,
        iteration: Iteration,
        fragment_env_steps: int,
        actors: int,
        train_steps: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Starts without a policy.

        Args:
          iteration: how experience is consumed.
          fragment_env_steps: env steps of an actor's environments in one fragment of each.
          actors: the number of collect actors.
          train_steps: of one iteration.
          clock: returns the time in seconds.
        """
        self._share = math.ceil(iteration.env_steps / actors / fragment_env_steps)
        self.surplus = self._share * actors * fragment_env_steps - iteration.env_steps
        self._part = math.ceil(self._share / max(1, actors - 1))
        self._ahead = 1 + iteration.max_policy_lag
        self._train_steps = train_steps
        self._clock = clock
        self._left = 0
        self._train_step: int | None = None
        self._usual_s: float | None = None
        self._share_s: float | None = None
        self._whole = False
        self._arrived = self._since = clock()
        self._took_over = False

    def policy_arrived(self, train_step: int) -> None:
        """Adds the share of a new policy, and one share for each policy that this actor has missed."""
        passed, now = self._ahead, self._clock()
        if self._train_step is not None and train_step > self._train_step:
            passed = (train_step - self._train_step) // self._train_steps
            self._measure(now)
        self._train_step = train_step
        self._left = min(self._left + passed * self._share, self._ahead * self._share)
        self._arrived = self._since = now
        self._took_over = False

    def _measure(self, now: float) -> None:
        """Updates the usual time between two policies."""
        if not self._whole:  # An actor may join in the middle of its first interval.
            self._whole = True
        elif self._usual_s is None or not self._took_over:
            self._usual_s = now - self._arrived
        else:  # Measures from the last takeover: before it, the actors waited for the missing actor.
            self._usual_s = max(now - self._since, _FADING * self._usual_s)

    @property
    def may_collect(self) -> bool:
        """Whether to collect a fragment now; ask again while it is False."""
        if self._left > 0:
            return True
        waited_s = self._clock() - self._since
        if self._share_s is None:
            self._share_s = waited_s
        if self._usual_s is None:
            patience_s = max(_FIRST_PATIENCE_S, _PATIENCE * self._share_s)
        else:
            patience_s = max(_MIN_PATIENCE_S, _PATIENCE * self._usual_s)
        if waited_s < patience_s:
            return False
        self._left = self._part
        self._since = self._clock()
        self._took_over = True
        return True

    def collected(self) -> None:
        """Counts a fragment."""
        self._left -= 1
