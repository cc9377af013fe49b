"""The table of a picture contains every point that the picture shows."""

import csv
from pathlib import Path

import pytest

from actorlearner.inspect.plot.figure import make_figure
from actorlearner.inspect.plot.runs import read_runs
from actorlearner.inspect.plot.write_plot import write_table
from tests.support.recorded_run import trained_run


def test_every_point_that_is_drawn_is_in_the_table(tmp_path: Path) -> None:
    few = [trained_run(tmp_path / f"few{seed}", f"seed={seed}", gain=1 + seed) for seed in (0, 1)]
    layout = "replay.layout=trajectory"
    many = [trained_run(tmp_path / f"many{seed}", f"seed={seed}", layout, gain=seed) for seed in range(5)]
    runs = read_runs([*few, *many], pytest.fail)
    write_table(runs, tmp_path / "plot.csv")
    rows = list(csv.DictReader((tmp_path / "plot.csv").read_text().splitlines()))
    returns = [row for row in rows if (row["quantity"], row["against"]) == ("return", "train_steps")]
    assert {(row["group"], row["run"]) for row in returns} == {
        ("replay.layout: packed (2 seeds)", "few0"),
        ("replay.layout: packed (2 seeds)", "few1"),
        ("replay.layout: trajectory (5 seeds)", ""),
    }
    drawn = make_figure(runs).get_axes()[1].lines
    points = [
        tuple(point) for line in drawn for point in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]
    assert [(float(row["x"]), float(row["value"])) for row in returns] == points
    assert {row["low"] for row in returns if row["run"]} == {""}
    assert all(
        float(row["low"]) <= float(row["value"]) <= float(row["high"]) for row in returns if not row["run"]
    )
    assert {row["comparison"] for row in rows} == {"sac on Pendulum-v1"}
    assert {row["quantity"] for row in rows} == {
        *("return", "train_steps_per_s", "env_steps_per_s"),
        *("staleness_mean", "staleness_max", "samples_per_insert"),
    }
