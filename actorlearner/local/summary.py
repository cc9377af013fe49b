"""The summary that a local run prints at its end."""

from collections.abc import Iterator, Mapping
from typing import Any

from actorlearner.acting.best_record import read_best
from actorlearner.inspect.bottleneck.verdict import verdict_lines
from actorlearner.local.progress import Progress
from actorlearner.records.formatting import decimals, duration
from actorlearner.records.run_directory import RunDirectory


def summary_lines(
    progress: Progress,
    directory: RunDirectory,
    start_ups: Mapping[str, str],
) -> Iterator[str]:
    """Yields the lines: returns, totals, start-up, mean rates, bottlenecks and files.

    Args:
      progress: of the run, updated.
      directory: of the run.
      start_ups: how long each phase of each role's start took.
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
    if faults := progress.status.faults:
        yield f"faults         {faults:,} of environments, each named in logs/"
    if progress.first_steps_s:
        env_s, train_s = progress.first_steps_s
        yield f"start-up       first env step after {env_s:.1f} s, first train step after {train_s:.1f} s"
        for role, phases in start_ups.items():
            yield f"  {role:<16} {phases}"
    train_rate, env_rate = progress.mean_rates
    yield f"mean rates     {train_rate:.1f} train steps/s, {env_rate:.1f} env steps/s, start-up included"
    for i, line in enumerate(verdict_lines(progress.status.bottlenecks)):
        yield f"{'' if i else 'bottleneck':<15}{line}"
    yield f"files          {directory.path}"
    for name, path in (
        ("policies", directory.policies),
        ("checkpoints", directory.learner_checkpoints),
        ("metrics", directory.metrics("eval").parent),
        ("TensorBoard", directory.summaries("eval").parent),
        ("logs", directory.log("learner").parent),
    ):
        if path.exists():
            yield f"  {name:<13}{path.relative_to(directory.path)}/"


def _return(evaluation: Mapping[str, Any]) -> str:
    average = float(evaluation["average_return"])
    return f"{average:.{decimals(average)}f}"
