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
    POLICY: "the actors ask their policy {} of the time",
    WRITING: "the actors write transitions {} of the time",
    VARIABLES: "the actors take over policy variables {} of the time",
    TRAINING: "the learner trains {} of the time",
    SAMPLING: "the learner waits {} of the time for batches, without the rate limiter",
    PUBLISHING: "the learner publishes policies {} of the time",
    SAVING: "the learner saves checkpoints and metrics {} of the time",
    LIMITER: "this side waits {} of the time for it, so the other side is slower",
}
_ADVICE = {
    ENVIRONMENTS: "add collect actors (collect.actors; more cores), or take a faster simulator",
    POLICY: "raise collect.envs_per_actor, so that one call serves more, or take smaller networks",
    WRITING: "use replay.layout=packed, smaller observations, or several replay servers",
    VARIABLES: "raise learn.publish_interval or collect.variables_interval_s",
    TRAINING: "give the learner more cores or devices, or take smaller networks or learn.batch_size",
    SAMPLING: "use replay.layout=packed, smaller observations, or several replay servers",
    PUBLISHING: "raise learn.publish_interval, and evaluate.interval where it is small",
    SAVING: "raise learn.checkpoint_interval, or take a faster disk",
    LIMITER: "inspect the other side's run directory; or change replay.updates_per_env_step",
}
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


def find_bottlenecks(waits: Waits, updates_per_env_step: float | None) -> list[Bottleneck]:
    """Finds the bottlenecks of a run.

    With `updates_per_env_step` the rate limiter ties collecting to training: the side that does not wait for
    it is the bottleneck, in its slowest phase. If both sides wait long, the limiter itself is. If neither
    does, or without the tie, each side has its own bottleneck.

    Args:
      waits: the shares of time of both sides.
      updates_per_env_step: the key under `replay`; None if the sides are not tied.

    Returns:
      One bottleneck; two if neither side waits for the other; none if no shares are known.
    """
    actors, learner = waits.actors, waits.learner
    if actors is None or learner is None:  # A role that was started by itself.
        return [*_of(actors, (*_ACTORS, LIMITER)), *_of(learner, (*_LEARNER, LIMITER))]
    if updates_per_env_step is None:
        return [*_of(actors, _ACTORS), *_of(learner, _LEARNER)]
    actors_wait, learner_waits = actors[LIMITER], learner[LIMITER]
    longer, shorter = max(actors_wait, learner_waits), min(actors_wait, learner_waits)
    if longer >= _WAITS and longer >= _FACTOR * shorter:
        if actors_wait > learner_waits:
            waiting = f"the actors wait {_percent(actors_wait)} of theirs for the rate limiter"
            fewer = f"lower replay.updates_per_env_step ({updates_per_env_step:g})"
            return _of(learner, _LEARNER, waiting, fewer)
        waiting = f"the learner waits {_percent(learner_waits)} of its own for the rate limiter"
        more = f"raise replay.updates_per_env_step ({updates_per_env_step:g})"
        return _of(actors, _ACTORS, waiting, more)
    if shorter >= _ALTERNATES:
        return [
            Bottleneck(
                LIMITER,
                f"it blocks the actors {_percent(actors_wait)} of the time and the learner "
                f"{_percent(learner_waits)}, in turn",
                "raise replay.error_buffer, so that each may run further ahead of the other",
            )
        ]
    return [*_of(actors, _ACTORS), *_of(learner, _LEARNER)]


def _of(
    side: Mapping[str, float] | None, parts: tuple[str, ...], waiting: str = "", otherwise: str = ""
) -> list[Bottleneck]:
    """Returns the phase that takes most of a side's time, as a list of one bottleneck."""
    if side is None:
        return []
    name = max(parts, key=lambda part: side[part])
    why = _REASONS[name].format(_percent(side[name]))
    return [
        Bottleneck(
            name,
            f"{why}, {waiting}" if waiting else why,
            f"{_ADVICE[name]}; or {otherwise}" if otherwise else _ADVICE[name],
        )
    ]


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.0f} %"


def verdict_lines(bottlenecks: Sequence[Bottleneck]) -> list[str]:
    """Returns two lines for each bottleneck: the reason and the advice."""
    return [line for each in bottlenecks for line in (f"{each.name}: {each.why}", f"  {each.advice}")]
