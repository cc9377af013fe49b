"""What a local run says at its end."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from actorlearner.acting.best_record import read_best
from actorlearner.inspect.bottleneck.verdict import Bottleneck, verdict_lines
from actorlearner.local.progress import Progress
from actorlearner.records.digits import decimals
from actorlearner.records.duration import duration
from actorlearner.records.run_directory import RunDirectory


def summary_lines(
    progress: Progress,
    directory: RunDirectory,
    start_ups: Mapping[str, str],
    bottlenecks: Sequence[Bottleneck] = (),
) -> Iterator[str]:
    """Yields the lines: returns, totals, start-up, mean rates, what held it back and where the files are.

    Args:
      progress: the figures.
      directory: where the run was written.
      start_ups: where the time of each role's start went.
      bottlenecks: what held the run back, over its last minute.
    """
    if progress.evaluations:
        first, last = progress.evaluations[0], progress.evaluations[-1]
        best = max(progress.evaluations, key=lambda evaluation: float(evaluation["average_return"]))
        yield (
            f"AverageReturn  first {_return(first)}, "
            f"best {_return(best)} at train step {best['train_step']:,}, "
            f"last {_return(last)} at train step {last['train_step']:,}"
        )
    best_policy = read_best(directory.best_policy)
    if best_policy is not None:
        yield f"best policy    {best_policy.describe()}"
    yield (
        f"totals         {progress.train_step:,} train steps, {progress.env_steps:,} env steps, "
        f"{progress.episodes:,} episodes{'; this part took' if progress.is_resumed else ' in'} "
        f"{duration(progress.elapsed_s)}"
    )
    if progress.faults:
        yield f"faults         {progress.faults:,} of environments, each named in logs/"
    if progress.first_env_step_s is not None and progress.first_train_step_s is not None:
        yield (
            f"start-up       first env step after {progress.first_env_step_s:.1f} s, "
            f"first train step after {progress.first_train_step_s:.1f} s"
        )
        for role, phases in start_ups.items():
            yield f"  {role:<16} {phases}"
    train_rate, env_rate = progress.mean_rates
    yield f"mean rates     {train_rate:.1f} train steps/s, {env_rate:.1f} env steps/s, start-up included"
    for i, line in enumerate(verdict_lines(bottlenecks)):
        yield f"{'' if i else 'held back by':<15}{line}"
    yield f"files          {directory.path}"
    for what, path in (
        ("policies", directory.policies),
        ("checkpoints", directory.learner_checkpoints),
        ("metrics", directory.metrics("eval").parent),
        ("TensorBoard", directory.summaries("eval").parent),
        ("logs", directory.log("learner").parent),
    ):
        if path.exists():
            yield f"  {what:<13}{path.relative_to(directory.path)}/"


def _return(evaluation: Mapping[str, Any]) -> str:
    average = float(evaluation["average_return"])
    return f"{average:.{decimals(average)}f}"
