"""The schedule of harm: its roles, times and kinds, drawn from a seed before the run."""

import dataclasses
import enum
import math
import random
from collections.abc import Iterator, Sequence

_HARMED_PART = 0.9
"""The fraction of the duration with harm; in the remainder the last role recovers."""

_TIME_FOR_ONE_HARM_S = 60.0
"""For each role there is one harm in so many seconds."""

_MAX_LENGTH_S = 10.0
_MIN_LENGTH_S = 2.0
_RECOVERY_S = 30.0
"""Least time from the end of a harm to the next to that role: a learner needs most of it to start."""

MIN_DURATION_S = 60
"""The shortest duration in which each role is killed once."""

SERVER = "replay-server"


class Kind(enum.Enum):
    """A kind of harm."""

    KILL = "kill"
    STOP = "stop"
    CUT = "cut"


@dataclasses.dataclass(frozen=True)
class Harm:
    """One harm to one role.

    Attributes:
      at_s: seconds after all roles were ready.
      role: the role, with its index where there are several.
      kind: what is done.
      length_s: how long it is stopped or cut off; 0 for a kill.
      drops: whether the connections of a role that is cut off are lost at the end; else they go on.
    """

    at_s: float
    role: str
    kind: Kind
    length_s: float = 0.0
    drops: bool = False

    def __str__(self) -> str:
        """The line that is printed."""
        if self.kind is Kind.KILL:
            return f"kill {self.role}"
        if self.kind is Kind.STOP:
            return f"stop {self.role} for {self.length_s:.0f} s"
        end = ", then drop its connections" if self.drops else ""
        return f"cut {self.role} off for {self.length_s:.0f} s{end}"


def make_schedule(duration_s: float, seed: int, roles: Sequence[Sequence[str]]) -> list[Harm]:
    """Decides all harms, ordered by time.

    More than half of the harms to each role are kills, and the first of a short run is one. Roles are harmed
    independently of each other, so also at the same time; but one role has time to come back in between.

    Args:
      duration_s: at least MIN_DURATION_S. Its last tenth has no harm.
      seed: the same seed gives the same schedule.
      roles: groups of names; each group is harmed as if it were one role, any of its members each time.
    """
    draw = random.Random(seed)
    harms = [harm for group in roles for harm in _of_group(duration_s * _HARMED_PART, group, draw)]
    return sorted(harms, key=lambda harm: harm.at_s)


def _of_group(span_s: float, group: Sequence[str], draw: random.Random) -> Iterator[Harm]:
    count = max(1, math.floor(span_s / _TIME_FOR_ONE_HARM_S))
    kinds = _kinds(count, group, draw)
    apart_s = _MAX_LENGTH_S + _RECOVERY_S
    # Uniform among all times that are far enough apart.
    slack_s = span_s - _MAX_LENGTH_S - (count - 1) * apart_s
    times = sorted(draw.uniform(0.0, slack_s) for _ in range(count))
    for i, (time_s, kind) in enumerate(zip(times, kinds, strict=True)):
        length_s = 0.0 if kind is Kind.KILL else draw.uniform(_MIN_LENGTH_S, _MAX_LENGTH_S)
        drops = kind is Kind.CUT and draw.random() < 0.5
        yield Harm(time_s + i * apart_s, draw.choice(group), kind, length_s, drops)


def _kinds(count: int, group: Sequence[str], draw: random.Random) -> list[Kind]:
    """Returns kills for more than half of the harms; the others are stops and cuts in turn.

    The replay server is not cut off: links end there.
    """
    others = [Kind.STOP] if SERVER in group else [Kind.STOP, Kind.CUT]
    kills = count // 2 + 1
    kinds = [Kind.KILL] * kills + [others[i % len(others)] for i in range(count - kills)]
    draw.shuffle(kinds)
    return kinds
