"""The figures that a report begins with."""

import dataclasses
from collections.abc import Iterator

from actorlearner.acting.best_record import BestRecord, read_best
from actorlearner.inspect.plot.runs import Run
from actorlearner.inspect.report.numbers import return_in_words
from actorlearner.inspect.status.run_status import RunStatus
from actorlearner.records.digits import decimals
from actorlearner.records.duration import duration
from actorlearner.records.run_files import RunFiles


@dataclasses.dataclass(frozen=True)
class Figure:
    """One of the figures that a report begins with.

    Attributes:
      name: what it is.
      value: with its unit.
      note: more about it, or empty.
    """

    name: str
    value: str
    note: str = ""


def key_figures(files: RunFiles, status: RunStatus, run: Run) -> Iterator[Figure]:
    """Yields those that are known, the most important first."""
    best = read_best(files.of_eval_actor.best_policy)
    if best is not None:
        yield _best(best)
    last = status.last_evaluation
    if last is not None and last["average_return"] is not None:
        average = return_in_words(last["average_return"])
        yield Figure("last evaluation", average, f"train step {last['train_step']:,}")
    yield from _progress(status, run)
    staleness = status.learner.get("staleness_mean")
    if staleness is not None:
        at_most = f"{status.learner['staleness_max']:,} at most"
        yield Figure("staleness", f"{staleness:,.0f} train steps", at_most)
    yield Figure("faults of environments", f"{status.faults:,}")


def _best(best: BestRecord) -> Figure:
    chosen, fresh = best.chosen, best.fresh
    name, played = ("best evaluation", chosen) if fresh is None else ("best policy", fresh)
    episodes = f"{len(played.returns)} {'' if fresh is None else 'fresh '}episodes"
    note = f"{episodes}, train step {best.train_step:,}"
    if fresh is not None:
        note += f"; {return_in_words(chosen.average)} when it was chosen"
    digits = decimals(played.average, played.deviation, least=1)
    return Figure(name, f"{played.average:,.{digits}f} ± {played.deviation:,.{digits}f}", note)


def _progress(status: RunStatus, run: Run) -> Iterator[Figure]:
    train_step, env_steps = status.train_step or 0, status.env_steps or 0  # Neither, before the first record.
    share = f"{100 * train_step / status.train_steps:.0f} % of {status.train_steps:,}"
    yield Figure("train steps", f"{train_step:,}", share)
    yield Figure("env steps", f"{env_steps:,}", "of all collect actors")
    seconds = float(run.training.times[-1]) if len(run.training.times) else 0.0
    if seconds > 0:
        yield Figure("time running", duration(seconds))
        rates = f"{train_step / seconds:,.0f} train steps/s", f"{env_steps / seconds:,.0f} env steps/s"
        yield Figure("mean rate", *rates)
