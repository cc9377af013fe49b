"""The points of a picture as a table, for people who draw their own."""

import dataclasses
from collections.abc import Iterator, Sequence

from actorlearner.inspect.plot.curves import returns_curves, throughput_curve, training_curve
from actorlearner.inspect.plot.groups import Group, comparisons
from actorlearner.inspect.plot.panels import RETURNS_AXES
from actorlearner.inspect.plot.runs import Run
from actorlearner.inspect.plot.statistics import Curve

_SECONDS = "seconds"


@dataclasses.dataclass(frozen=True)
class Point:
    """One point of one line. The fields, in this order, are the columns of the CSV file.

    Attributes:
      comparison: the title of the panels: the environment, and the algorithm if it is the same for all.
      group: the label of the line's colour in the legend.
      run: the name of the run that the line shows; empty for a line over all runs of the group.
      quantity: `return`, `train_steps_per_s`, `env_steps_per_s`, `staleness_mean`, `staleness_max` (both in
        train steps) or `samples_per_insert` (in transitions).
      against: what `x` counts: `env_steps`, `train_steps` or `seconds` of running.
      x, value: the point.
      low, high: the band there; NaN where there is none.
    """

    comparison: str
    group: str
    run: str
    quantity: str
    against: str
    x: float
    value: float
    low: float
    high: float


def drawn_points(runs: Sequence[Run]) -> Iterator[Point]:
    """Yields every point of the picture of these runs (see `make_figure`), line by line."""
    for comparison in comparisons(runs):
        for group in comparison.groups:
            for run, quantity, against, curve in _lines(group):
                columns = (curve.x, curve.middle, curve.low, curve.high)
                for numbers in zip(*(column.tolist() for column in columns), strict=True):
                    yield Point(comparison.title, group.label, run, quantity, against, *numbers)


def _lines(group: Group) -> Iterator[tuple[str, str, str, Curve]]:
    """Yields the run, the quantity, what it is drawn against, and the curve of each line."""
    for axis in RETURNS_AXES:
        for line in returns_curves(group, axis):
            yield line.run, "return", _SECONDS if axis == "times" else axis, line.curve
    over_runs = [
        *(
            (f"{counter}_per_s", _SECONDS, throughput_curve(group, counter))
            for counter in ("train_steps", "env_steps")
        ),
        *(
            (quantity, "train_steps", training_curve(group, quantity))
            for quantity in ("staleness_mean", "staleness_max", "samples_per_insert")
        ),
    ]
    for quantity, against, curve in over_runs:
        if curve is not None:
            yield "", quantity, against, curve
