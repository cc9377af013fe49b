"""The verdict on a run's bottleneck: its name, its reason and advice."""

import dataclasses
from collections.abc import Mapping, Sequence

from actorlearner.inspect.bottleneck.waits import (
    ENVIRONMENTS,
    LIMITER,
    POLICY,
    PUBLISHING,
    SAMPLING,
    SAVING,
    TRAINING,
    VARIABLES,
    WRITING,
    Waits,
)

_WAITS = 0.1
"""A side that waits for at least this fraction of its time counts as waiting for the other side."""

_ALTERNATES = 0.25
"""If both sides wait for at least this fraction, the rate limiter is the bottleneck."""

_FACTOR = 2.0
"""A side is the bottleneck if the other one waits at least this many times longer."""

_REASONS = {
    ENVIRONMENTS: "the actors step environments {} of the time",
    POLICY: "the actors run policy inference {} of the time",
    WRITING: "the actors write transitions {} of the time",
    VARIABLES: "the actors assign policy variables {} of the time",
    TRAINING: "the learner trains {} of the time",
    SAMPLING: "the learner waits {} of the time for batches, without the rate limiter",
    PUBLISHING: "the learner publishes policies {} of the time",
    SAVING: "the learner saves checkpoints and metrics {} of the time",
    LIMITER: "this side waits {} of the time for the other one",
}
_ADVICE = {
    ENVIRONMENTS: "add collect actors (collect.actors; more cores), or take a faster simulator",
    POLICY: "raise collect.envs_per_actor, so that one call serves more, or take smaller networks",
    WRITING: "use replay.layout=packed, smaller observations, or several replay servers",
    VARIABLES: "raise learn.publish_interval or collect.variables_interval_s",
    TRAINING: "give the learner more cores or a GPU (learn.xla=true), or smaller networks or batches",
    SAMPLING: "use replay.layout=packed, smaller observations, or several replay servers",
    PUBLISHING: "raise learn.publish_interval, and evaluate.interval where it is small",
    SAVING: "raise learn.checkpoint_interval, or take a faster disk",
    LIMITER: "inspect the other side's run directory; or change replay.updates_per_env_step",
}
_MORE_LAG = "raise agent.max_policy_lag, so that actors collect while the learner trains"
_CONSUMED_ONCE_ADVICE = _ADVICE | {
    WRITING: "use smaller observations, or several replay servers",
    VARIABLES: "raise agent.env_steps_per_iteration",
    SAMPLING: "use smaller observations, or several replay servers",
    PUBLISHING: "raise agent.env_steps_per_iteration, and evaluate.interval where it is small",
    LIMITER: f"inspect the other side's run directory; or {_MORE_LAG}",
}
"""Without the keys that are refused where experience is consumed once."""
_ACTORS = (ENVIRONMENTS, POLICY, WRITING, VARIABLES)
_LEARNER = (TRAINING, SAMPLING, PUBLISHING, SAVING)


@dataclasses.dataclass(frozen=True)
class Bottleneck:
    """A bottleneck of a run.

    Attributes:
      name: environments, policy, writing, variables, training, sampling, publishing, saving or rate limiter.
      why: the reason, with its figures.
      advice: the changes that would help.
    """

    name: str
    why: str
    advice: str


def find_bottlenecks(
    waits: Waits, updates_per_env_step: float | None, *, consumed_once: bool = False
) -> list[Bottleneck]:
    """Finds the bottlenecks of a run.

    With `updates_per_env_step` the rate limiter ties collecting to training: the side that does not wait for
    it is the bottleneck, in its slowest phase. If both sides wait long, the limiter itself is. If neither
    does, or without the tie, each side has its own bottleneck.

    Where experience is consumed once, each side waits while the other one works: the side that the other
    waits for longer is the bottleneck.

    Args:
      waits: the shares of time of both sides.
      updates_per_env_step: the key under `replay`; None without it.
      consumed_once: whether experience is consumed once.

    Returns:
      One bottleneck; two if neither side waits for the other; none if no shares are known.
    """
    advice = _CONSUMED_ONCE_ADVICE if consumed_once else _ADVICE
    if waits.actors is None or waits.learner is None:  # A role that was started by itself.
        sides = (waits.actors, (*_ACTORS, LIMITER)), (waits.learner, (*_LEARNER, LIMITER))
        return [_slowest(side, parts, advice) for side, parts in sides if side is not None]
    of_actors = _slowest(waits.actors, _ACTORS, advice)
    of_learner = _slowest(waits.learner, _LEARNER, advice)
    if updates_per_env_step is None and not consumed_once:
        return [of_actors, of_learner]
    actors_wait, learner_waits = waits.actors[LIMITER], waits.learner[LIMITER]
    longer, shorter = max(actors_wait, learner_waits), min(actors_wait, learner_waits)
    if longer >= _WAITS and (consumed_once or longer >= _FACTOR * shorter):
        key = f"replay.updates_per_env_step ({updates_per_env_step or 0:g})"
        if actors_wait > learner_waits:
            other, change = ("learner", _MORE_LAG) if consumed_once else ("rate limiter", f"lower {key}")
            waiting = f"the actors wait {_percent(actors_wait)} of their time for the {other}"
            return [_waited_for(of_learner, waiting, change)]
        other, change = ("actors", _MORE_LAG) if consumed_once else ("rate limiter", f"raise {key}")
        waiting = f"the learner waits {_percent(learner_waits)} of its time for the {other}"
        return [_waited_for(of_actors, waiting, change)]
    if shorter >= _ALTERNATES:
        why = (
            f"it blocks the actors {_percent(actors_wait)} of the time and the learner "
            f"{_percent(learner_waits)}, in turn"
        )
        advised = "raise replay.error_buffer, so that each may run further ahead of the other"
        return [Bottleneck(LIMITER, why, advised)]
    return [of_actors, of_learner]


def _slowest(side: Mapping[str, float], parts: Sequence[str], advice: Mapping[str, str]) -> Bottleneck:
    """Returns the phase that takes most of a side's time."""
    name = max(parts, key=lambda part: side[part])
    return Bottleneck(name, _REASONS[name].format(_percent(side[name])), advice[name])


def _waited_for(slowest: Bottleneck, waiting: str, change: str) -> Bottleneck:
    return Bottleneck(slowest.name, f"{slowest.why}, {waiting}", f"{slowest.advice}; or {change}")


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.0f} %"


def verdict_lines(bottlenecks: Sequence[Bottleneck]) -> list[str]:
    """Returns two lines for each bottleneck: the reason and the advice."""
    return [line for each in bottlenecks for line in (f"{each.name}: {each.why}", f"  {each.advice}")]
