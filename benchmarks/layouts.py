"""Compares what finished runs with either replay layout have learned.

    .venv/bin/python -m benchmarks.layouts runs/cheetah-{packed,trajectory}-*

Of each experiment and layout the table has the AverageReturn at the last evaluation, over runs, that averaged
over all evaluations but the one before training, and the mean return of the episodes collected, over env
steps: three figures of which each varies less between seeds than the one before. Below stand the
differences of the means with a 95 % confidence interval (Welch, 1947) and how often a difference as large
or larger comes up when the runs are dealt to the layouts at random (a permutation test of the means). The
last line counts relapses, see `relapses`, with Fisher's exact test, as if evaluations were independent.
"""

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import scipy.stats

from benchmarks import markdown
from benchmarks.learning import Run, read

_LAYOUTS = ("packed", "trajectory")

_HEADER = ("experiment", "layout", "runs", "lowest", "median", "mean", "highest", "evaluations", "collected")
_PERMUTATIONS = 100_000
_SEED = 0


def last_return(run: Run) -> float:
    """The AverageReturn at the last evaluation."""
    return run.returns[-1]


def mean_return(run: Run) -> float:
    """The AverageReturn in the mean over the evaluations after the first."""
    return statistics.mean(run.returns[1:])


def relapses(run: Run) -> tuple[int, int]:
    """Evaluations of the second half of the training: (no better than the one before training, better)."""
    half = run.train_steps[-1] / 2
    late = [value for step, value in zip(run.train_steps, run.returns, strict=True) if step >= half]
    lost = sum(value <= run.returns[0] for value in late)
    return lost, len(late) - lost


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table and the comparisons; returns the exit code."""
    parser = argparse.ArgumentParser(description="Compares what runs with either layout have learned.")
    parser.add_argument("run_dirs", metavar="RUN_DIR", nargs="+", type=Path)
    options = parser.parse_args(arguments)
    runs = [read(path) for path in options.run_dirs]
    for run, path in zip(runs, options.run_dirs, strict=True):
        if run.train_steps[-1] < run.config.learn.train_steps or len(run.returns) < 2:
            parser.error(f"{path} is not finished: its last evaluation is at {run.train_steps[-1]:,}")
    for line in comparison(runs):
        print(line)
    return 0


def comparison(runs: Sequence[Run]) -> Iterator[str]:
    """Yields a Markdown table of all layouts, and a line for each difference between them."""
    groups = grouped(runs)
    yield from markdown.table(_HEADER, [(*key, *_figures(group)) for key, group in groups.items()])
    yield ""
    for experiment in dict.fromkeys(experiment for experiment, _ in groups):
        packed, trajectory = (groups.get((experiment, layout), []) for layout in _LAYOUTS)
        if min(len(packed), len(trajectory)) < 2:
            yield f"{experiment}: a comparison takes at least two runs of each layout"
            continue
        yield _difference(experiment, "last evaluation", packed, trajectory, last_return)
        yield _difference(experiment, "mean over evaluations", packed, trajectory, mean_return)
        yield _difference(experiment, "collected", packed, trajectory, lambda run: run.collected)
        yield _relapses(experiment, packed, trajectory)


def grouped(runs: Sequence[Run]) -> dict[tuple[str, str], list[Run]]:
    """Runs by experiment and layout, in the order in which each came up first."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        experiment = f"{run.experiment}, {run.train_steps[-1]:,} train steps"
        groups.setdefault((experiment, run.config.replay.layout), []).append(run)
    return groups


def permutation_p(one: Sequence[float], other: Sequence[float]) -> float:
    """The two-sided p-value of a difference of means, when all assignments are equally likely."""
    result = scipy.stats.permutation_test(
        (one, other),
        lambda a, b, axis: np.mean(a, axis=axis) - np.mean(b, axis=axis),
        vectorized=True,
        n_resamples=_PERMUTATIONS,
        random_state=_SEED,
    )
    return float(result.pvalue)


def _figures(group: Sequence[Run]) -> tuple[str, ...]:
    last = [last_return(run) for run in group]
    figures = (min(last), statistics.median(last), statistics.mean(last), max(last))
    return (
        str(len(group)),
        *(f"{figure:.0f}" for figure in figures),
        f"{statistics.mean(mean_return(run) for run in group):.0f}",
        f"{statistics.mean(run.collected for run in group):.0f}",
    )


def _difference(
    experiment: str,
    name: str,
    packed: Sequence[Run],
    trajectory: Sequence[Run],
    value: Callable[[Run], float],
) -> str:
    one, other = ([value(run) for run in group] for group in (packed, trajectory))
    welch = scipy.stats.ttest_ind(one, other, equal_var=False).confidence_interval(0.95)
    difference = statistics.mean(one) - statistics.mean(other)
    return (
        f"{experiment}, {name}: packed - trajectory = {difference:+.0f} "
        f"(95 %: {welch.low:+.0f} to {welch.high:+.0f}), p = {permutation_p(one, other):.2f}"
    )


def _relapses(experiment: str, packed: Sequence[Run], trajectory: Sequence[Run]) -> str:
    counts = np.array([np.sum([relapses(run) for run in group], axis=0) for group in (packed, trajectory)])
    counted = (
        f"{layout} {lost} of {lost + better}"
        for layout, (lost, better) in zip(_LAYOUTS, counts.tolist(), strict=True)
    )
    return f"{experiment}, relapses: {', '.join(counted)}, p = {scipy.stats.fisher_exact(counts).pvalue:.2f}"


if __name__ == "__main__":
    sys.exit(main())
