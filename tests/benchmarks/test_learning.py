"""What the table of learning reads from a run directory."""

import json
from pathlib import Path

import pytest

from benchmarks import learning
from tests.support.recorded_run import evaluation, recorded_run, report


def test_a_run_is_read_with_what_its_actors_collected(tmp_path: Path) -> None:
    directory, _ = recorded_run(
        tmp_path,
        evaluations=[evaluation(30, 0, [-4.0]), evaluation(120, 500, [-2.0, -1.0])],
        training=[report(40, 10) | {"train_steps_per_s": 9.0}],
    )
    # Half of the env steps rise from -8 to -4, the other half stay there: -6 and -4 in the mean.
    first = [(100, None), (200, -8.0), (400, -4.0), (600, -4.0)]
    # Records come by time: the second half of these env steps has more of them, and counts no more.
    second = [(0, -2.0), (100, -2.0), (120, 0.0), (140, 0.0), (160, 0.0), (200, 0.0)]
    for number, records in enumerate((first, second)):
        lines = [json.dumps({"env_steps": at, "average_return": value}) for at, value in records]
        directory.metrics(f"collect-{number}").write_text("\n".join(lines) + "\n")

    run = learning.read(tmp_path)

    assert (run.train_steps, run.returns) == ([0, 500], [-4.0, -1.5])
    assert run.minutes == 2.0
    # -2 for the first 100 env steps, -1 for the next 20 and 0 for the last 80: -220 in 200.
    assert run.collected == pytest.approx((-5.0 - 220 / 200) / 2)


def test_a_directory_without_an_evaluation_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=f"{tmp_path}: no evaluation there"):
        learning.read(tmp_path)
