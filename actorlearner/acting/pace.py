"""Limits how many env steps a collect actor takes with each policy of an on-policy algorithm."""

import math
import time
from collections.abc import Callable

from actorlearner.agents.experience import Iteration

_MIN_PATIENCE_S = 1.0
_FIRST_PATIENCE_S = 30.0
"""Minimum wait before a takeover until the third policy arrives: only then is the usual interval known."""

_FADING = 0.75
"""After an interval with a takeover, the usual interval may shrink, but not below this fraction of its value.
The next interval without a takeover measures it again."""

_CHECK_EVERY = 8
"""After this many intervals in a row with a takeover, an actor waits longer once: twice the last interval. If
the policy comes before that, no actor is missing: training or collecting has only become slower."""

_PATIENCE = 2.0
"""An actor takes over after waiting for this multiple of the usual interval between two policies."""


class Pace:
    """Divides the env steps of each policy equally among the actors.

    An actor that has collected its share waits for the next policy. After a wait of twice the usual interval
    between two policies, it assumes that an actor has died, and collects its part of that actor's share (a
    takeover); it does so again after each further wait of that length. So no actor waits for ever if others
    join, leave or die, and no actor has to poll the replay server. The learner drops what it does not need.

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
          iteration: the agent's Iteration.
          fragment_env_steps: env steps of one fragment from each environment of an actor, together.
          actors: the number of collect actors.
          train_steps: train steps of one iteration.
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
        self._last_interval_s = 0.0
        self._interval_has_takeover = False
        self._takeover_streak = 0  # Complete intervals in a row with a takeover.

    def policy_arrived(self, train_step: int) -> None:
        """Adds the share of a new policy, and one share for each policy that this actor has missed.

        The first policy of a learner, new or restarted, adds as many shares as the policy lag allows.
        """
        shares, now = self._max_shares, self._clock()
        if self._train_step is not None and train_step > self._train_step:
            shares = (train_step - self._train_step) // self._train_steps
            self._measure(now)
        self._train_step = train_step
        most = self._max_shares * self._share
        self._fragments_left = min(self._fragments_left + shares * self._share, most)
        self._policy_at = self._waiting_since = now
        self._interval_has_takeover = False

    def _measure(self, now: float) -> None:
        """Updates the usual interval between two policies."""
        self._last_interval_s = now - self._policy_at
        self._takeover_streak = self._takeover_streak + 1 if self._interval_has_takeover else 0
        if not self._joined_before_this_interval:  # An actor may join in the middle of its first interval.
            self._joined_before_this_interval = True
        elif self._usual_interval_s is None or not self._interval_has_takeover:
            self._usual_interval_s = self._last_interval_s
        else:  # From the last takeover on: before, the actors waited for the one that is missing.
            self._usual_interval_s = max(now - self._waiting_since, _FADING * self._usual_interval_s)

    def may_collect(self) -> bool:
        """Returns whether to collect a fragment now; after a long wait, this begins a takeover."""
        if self._fragments_left == 0 and self._waited_too_long():
            self._fragments_left = self._takeover_share
            self._waiting_since = self._clock()
            self._interval_has_takeover = True
        return self._fragments_left > 0

    def _waited_too_long(self) -> bool:
        """Returns whether an actor may have died; the first call measures how long the first share took."""
        waited_s = self._clock() - self._waiting_since
        if self._first_share_s is None:
            self._first_share_s = waited_s
        if self._usual_interval_s is None:
            return waited_s >= max(_FIRST_PATIENCE_S, _PATIENCE * self._first_share_s)
        is_check = self._takeover_streak > 0 and self._takeover_streak % _CHECK_EVERY == 0
        interval_s = self._last_interval_s if is_check else self._usual_interval_s
        return waited_s >= max(_MIN_PATIENCE_S, _PATIENCE * interval_s)

    def collected(self) -> None:
        """Counts a fragment."""
        self._fragments_left -= 1
