"""Limits how many env steps a collect actor takes with each policy of an on-policy algorithm."""

import math
import time
from collections.abc import Callable

from actorlearner.agents.experience import Iteration

_MIN_PATIENCE_S = 1.0
_FIRST_PATIENCE_S = 30.0
"""Least seconds that an actor waits before a takeover until the third policy: the usual time is unknown."""

_FADING = 0.75
"""After an interval with a takeover, the usual time may shrink, but not below this fraction of what it was.
The next interval without one measures it again."""

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
        self._takeover_share = math.ceil(self._share / max(1, actors - 1))
        self._max_shares = 1 + iteration.max_policy_lag
        self._train_steps = train_steps
        self._clock = clock
        self._fragments_left = 0
        self._train_step: int | None = None
        self._usual_interval_s: float | None = None
        self._first_share_s: float | None = None
        self._joined_before_this_interval = False
        self._policy_at = self._waiting_since = clock()
        self._took_over = False

    def policy_arrived(self, train_step: int) -> None:
        """Adds the share of a new policy, and one share for each policy that this actor has missed."""
        shares, now = self._max_shares, self._clock()
        if self._train_step is not None and train_step > self._train_step:
            shares = (train_step - self._train_step) // self._train_steps
            self._measure(now)
        self._train_step = train_step
        most = self._max_shares * self._share
        self._fragments_left = min(self._fragments_left + shares * self._share, most)
        self._policy_at = self._waiting_since = now
        self._took_over = False

    def _measure(self, now: float) -> None:
        """Updates the usual time between two policies."""
        if not self._joined_before_this_interval:  # An actor may join in the middle of its first interval.
            self._joined_before_this_interval = True
        elif self._usual_interval_s is None or not self._took_over:
            self._usual_interval_s = now - self._policy_at
        else:  # Measures from the last takeover: before it, the actors waited for the missing actor.
            self._usual_interval_s = max(now - self._waiting_since, _FADING * self._usual_interval_s)

    def may_collect(self) -> bool:
        """Returns whether to collect a fragment now; after a long wait, this begins a takeover."""
        if self._fragments_left == 0 and self._waited_too_long():
            self._fragments_left = self._takeover_share
            self._waiting_since = self._clock()
            self._took_over = True
        return self._fragments_left > 0

    def _waited_too_long(self) -> bool:
        """Returns whether an actor may have died; the first call measures how long the first share took."""
        waited_s = self._clock() - self._waiting_since
        if self._first_share_s is None:
            self._first_share_s = waited_s
        if self._usual_interval_s is None:
            return waited_s >= max(_FIRST_PATIENCE_S, _PATIENCE * self._first_share_s)
        return waited_s >= max(_MIN_PATIENCE_S, _PATIENCE * self._usual_interval_s)

    def collected(self) -> None:
        """Counts a fragment."""
        self._fragments_left -= 1
