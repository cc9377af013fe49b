"""What the comparison of the layouts says of runs."""

import dataclasses
from collections.abc import Sequence

import pytest

from actorlearner.agents.configuration import load_config
from benchmarks import layouts
from benchmarks.learning import Run

PENDULUM = load_config("sac_pendulum", ("learn.train_steps=20",))


def run(layout: str, *returns: float) -> Run:
    replay = dataclasses.replace(PENDULUM.replay, layout=layout)
    config = dataclasses.replace(PENDULUM, replay=replay)
    steps = [10 * number for number in range(len(returns))]
    collected = sum(returns) / len(returns)
    return Run(
        config=config, train_steps=steps, returns=list(returns), collected=collected, rate=1.0, minutes=1.0
    )


def compared(packed: Sequence[Sequence[float]], trajectory: Sequence[Sequence[float]]) -> list[str]:
    runs = [run("packed", *returns) for returns in packed]
    return list(layouts.comparison(runs + [run("trajectory", *returns) for returns in trajectory]))


def test_each_layout_has_a_row_with_the_returns_of_its_runs() -> None:
    lines = compared([(-900, 10, 30), (-900, 20, 50), (-900, 30, 100)], [(-900, 0, 7)])

    experiment = "sac Pendulum-v1, 20 train steps"
    assert lines[2:4] == [
        f"| {experiment} | packed | 3 | 30 | 50 | 60 | 100 | 40 | -273 |",
        f"| {experiment} | trajectory | 1 | 7 | 7 | 7 | 7 | 4 | -298 |",
    ]
    assert lines[5:] == [f"{experiment}: a comparison takes at least two runs of each layout"]


def test_differences_of_the_last_return_and_of_the_mean_return_are_told() -> None:
    packed = [(0, 100 + seed, 10 + seed) for seed in range(5)]
    trajectory = [(0, 0 + seed, 20 + seed) for seed in range(5)]

    last, mean, collected, _ = compared(packed, trajectory)[5:]

    # All five of either are above all of the other: 2 of 252 ways to deal them. Welch's interval of two
    # groups of five with a variance of 2.5 each is the difference +/- 2.306 (t of 8 degrees of freedom).
    assert "last evaluation: packed - trajectory = -10 (95 %: -12 to -8), p = 0.01" in last
    assert "mean over evaluations: packed - trajectory = +45 (95 %: +43 to +47), p = 0.01" in mean
    assert "collected: packed - trajectory = +30 (95 %: +28 to +32), p = 0.01" in collected


def test_late_evaluations_no_better_than_the_one_before_training_are_relapses() -> None:
    # Five evaluations, of which the last three are of the second half; an early one may be as bad.
    packed = [(-9, -10, -9, 5, 7), (-9, -8, 5, 6, 8), (-9, 1, 2, -10, 9)]
    trajectory = [(-9, -20, -8, 5, last) for last in (6, 7, 8)]

    relapses = compared(packed, trajectory)[-1]

    # No fewer than both of the two among 9 of 18 evaluations, or none: 2 x 9 x 8 / (18 x 17) = 0.47.
    assert relapses.endswith("relapses: packed 2 of 9, trajectory 0 of 9, p = 0.47")


def test_equal_runs_do_not_differ() -> None:
    assert layouts.permutation_p([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) == 1.0
    assert layouts.permutation_p([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]) == pytest.approx(2 / 20)


def test_an_unfinished_run_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(layouts, "read", lambda path: run("packed", -900, 10))

    with pytest.raises(SystemExit):
        layouts.main(["runs/young"])

    assert "runs/young is not finished: its last evaluation is at 10" in capsys.readouterr().err
