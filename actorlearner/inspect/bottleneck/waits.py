"""The recent shares of time of a run's actors and learner, from their metrics."""

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

Records = Sequence[Mapping[str, Any]]
"""The records of one metrics file, oldest first."""

LIMITER = "rate limiter"
ENVIRONMENTS = "environments"
POLICY = "policy"
WRITING = "writing"
VARIABLES = "variables"
TRAINING = "training"
SAMPLING = "sampling"
PUBLISHING = "publishing"
SAVING = "saving"

_WINDOW_S = 60.0
"""The window of newest records that counts: long enough for several records and for bursts."""

_LIMITER_KEY = "rate_limiter_wait_fraction"
_ACTOR_KEYS = {
    ENVIRONMENTS: "environment_fraction",
    POLICY: "policy_fraction",
    WRITING: "writing_fraction",
    LIMITER: _LIMITER_KEY,
    VARIABLES: "variables_fraction",
}
_LEARNER_KEYS = ("data_wait_fraction", _LIMITER_KEY, "publish_fraction", "overhead_fraction")


@dataclasses.dataclass(frozen=True)
class Waits:
    """Shares of time by phase; None for a side that has not reported them.

    Attributes:
      actors: the mean of all actors: ENVIRONMENTS, POLICY, WRITING (with the server's confirmations), LIMITER
        and VARIABLES. The sum is slightly less than 1.
      learner: TRAINING (the training graph, without waiting for batches), SAMPLING (waiting for batches
        while the rate limiter does not block), LIMITER, PUBLISHING and SAVING (checkpoints, policies,
        metrics). The sum is 1.
    """

    actors: Mapping[str, float] | None
    learner: Mapping[str, float] | None


def recent_waits(learner: Records, actors: Sequence[Records]) -> Waits:
    """Returns the shares of time over the _WINDOW_S seconds before the newest record.

    Args:
      learner: records of the learner.
      actors: records of each collect actor. Records without the shares are ignored.
    """
    newest = [records[-1]["time"] for records in (learner, *actors) if records]
    if not newest:
        return Waits(None, None)
    since = max(max(newest) - _WINDOW_S, _trains_since(learner))
    if learner and learner[-1].get(_LIMITER_KEY) is None:  # Its first record, see _trains_since.
        return Waits(None, None)
    means = [_mean(_acting(records), list(_ACTOR_KEYS.values()), since) for records in actors]
    known = [mean for mean in means if mean is not None]
    parts = _mean(learner, _LEARNER_KEYS, since)
    return Waits(_of_actors(known) if known else None, None if parts is None else _of_learner(parts))


def _trains_since(learner: Records) -> float:
    """Returns the Unix time at which the learner began to train steadily.

    Earlier shares are not representative: the learner's first call optimises the graph, and then it saves the
    first policies. Its first record therefore has no shares.
    """
    since = -math.inf
    for first, record in itertools.pairwise(learner):
        if first.get(_LIMITER_KEY) is None:
            rate, before = record.get("train_steps_per_s"), first.get("train_step", 0)
            took_s = (record.get("train_step", before) - before) / rate if rate else 0.0
            since = record["time"] - took_s
    return since


def _acting(records: Records) -> Records:
    """Returns the records of actions by the policy; all records if every action was random."""
    return [record for record in records if record.get("policy_train_step", -1) >= 0] or records


def _mean(records: Records, keys: Sequence[str], since: float) -> dict[str, float] | None:
    """Returns the time-weighted mean of each key; a record covers the time since the one before it."""
    seconds: list[float] = []
    weighted: list[Mapping[str, Any]] = []
    for before, record in itertools.pairwise(records):
        if record["time"] > since and all(isinstance(record.get(key), int | float) for key in keys):
            seconds.append(max(1e-3, record["time"] - before["time"]))
            weighted.append(record)
    if not weighted:
        return None
    return {
        key: sum(s * record[key] for s, record in zip(seconds, weighted, strict=True)) / sum(seconds)
        for key in keys
    }


def _of_actors(means: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {part: sum(mean[key] for mean in means) / len(means) for part, key in _ACTOR_KEYS.items()}


def _of_learner(mean: Mapping[str, float]) -> dict[str, float]:
    waited, limiter, publishing, saving = (mean[key] for key in _LEARNER_KEYS)
    return {
        TRAINING: max(0.0, 1.0 - waited - publishing - saving),
        SAMPLING: waited - limiter,
        LIMITER: limiter,
        PUBLISHING: publishing,
        SAVING: saving,
    }
