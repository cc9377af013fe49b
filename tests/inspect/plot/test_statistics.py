"""Interquartile means, bands, common points, rates and averages, against values worked out by hand."""

import numpy as np
import pytest

from actorlearner.inspect.plot.statistics import (
    MAX_POINTS,
    Curve,
    Numbers,
    common_points,
    interquartile_mean_curve,
    mean_curve,
    piecewise_curve,
    rate_curve,
)


def numbers(*values: float) -> Numbers:
    return np.array(values, np.float64)


def of_runs(*values: float) -> Curve:
    """The curve of runs with one point each."""
    return interquartile_mean_curve([numbers(7)] * len(values), [numbers(value) for value in values])


def test_a_quarter_of_the_runs_is_cut_off_at_either_end() -> None:
    assert of_runs(100, 2, 1, 3).middle == [2.5]
    assert of_runs(1, 2, 3, 4, 5, 6, 7, 800).middle == [4.5]


def test_fewer_than_five_runs_have_no_band() -> None:
    few, enough = of_runs(1, 2, 3, 4), of_runs(1, 2, 3, 4, 5)
    assert np.isnan([few.low, few.high]).all()
    assert enough.low < 3 < enough.high


def test_the_band_of_many_runs_is_that_of_the_percentile_bootstrap() -> None:
    """For 100 runs, half 0 and half 1: the mean of a resample's middle half is (number of ones - 25) / 50."""
    curve = of_runs(*[0, 1] * 50)
    assert curve.middle == [0.5]
    # The number of ones in a resample is binomial: 40 and 60 of 100 at 2.5 and 97.5 %.
    assert curve.low[0] == pytest.approx((40 - 25) / 50, abs=0.04)
    assert curve.high[0] == pytest.approx((60 - 25) / 50, abs=0.04)


def test_curves_are_always_the_same() -> None:
    values = list(np.random.default_rng(3).normal(size=10))
    first, second = of_runs(*values), of_runs(*values)
    assert (first.low, first.high) == (second.low, second.high)
    assert first.low < first.middle < first.high


def test_runs_are_interpolated_onto_all_points_of_the_range_that_they_share() -> None:
    curve = interquartile_mean_curve(
        [numbers(0, 10, 20), numbers(4, 14, 24)], [numbers(0, 10, 20), numbers(0, 0, 100)]
    )
    assert list(curve.x) == [4, 10, 14, 20]
    assert list(curve.middle) == [2, 5, 7, (20 + 60) / 2]


def test_runs_without_a_range_in_common_have_no_curve() -> None:
    xs = [numbers(0, 1), numbers(2, 3)]
    for curve in (interquartile_mean_curve(xs, xs), rate_curve(xs, xs), piecewise_curve(xs, xs)):
        assert len(curve.x) == 0


def test_points_are_bounded_and_keep_both_ends() -> None:
    points = common_points([np.arange(1_001.0), np.arange(0.5, 1_000.0)])
    assert len(points) == MAX_POINTS
    assert (points[0], points[-1]) == (0.5, 999.5)


def test_the_mean_of_episodes_has_a_band_where_there_are_five() -> None:
    curve = mean_curve(numbers(0, 10), [numbers(5, 5, 5, 9), numbers(-1, 3, -1, 3, 1)])
    assert list(curve.middle) == [6, 1]
    assert np.isnan([curve.low[0], curve.high[0]]).all()
    assert -1 < curve.low[1] < 1 < curve.high[1] < 3


def test_intervals_without_a_report_are_omitted() -> None:
    """Three intervals from 0 to 9; the first run reports in none but the first and the last."""
    xs = [numbers(0, 1, 2, 7, 8, 9), numbers(0, 1, 2, 2, 8, 8, 9)]
    curve = piecewise_curve(xs, [numbers(1, 1, 1, 5, 5, 5), numbers(3, 3, 3, 3, 7, 7, 7)])
    assert list(curve.x) == [1.5, 7.5]
    assert list(curve.middle) == [2, 6]


def test_a_rate_is_counted_by_time() -> None:
    curve = rate_curve([numbers(0, 2, 4, 6, 8)], [numbers(0, 20, 40, 40, 80)])
    assert list(curve.x) == [2, 6]
    assert list(curve.middle) == [10, 10]


def test_a_counter_that_goes_back_counted_nothing_meanwhile() -> None:
    curve = rate_curve([numbers(0, 2, 4, 6)], [numbers(0, 20, 10, 30)])
    assert list(curve.x) == [1.5, 4.5]
    assert list(curve.middle) == pytest.approx([20 / 3, 20 / 3])


def test_rates_of_several_runs_are_averaged_while_all_run() -> None:
    curve = rate_curve([numbers(0, 1, 2), numbers(0, 1, 2, 3)], [numbers(0, 1, 2), numbers(0, 3, 6, 9)])
    assert list(curve.x) == [1]
    assert list(curve.middle) == [2]


def test_reports_are_averaged_in_pieces_and_then_over_runs() -> None:
    xs = [numbers(0, 1, 9, 10), numbers(0, 4, 10, 11)]
    ys = [numbers(1, 3, 5, 7), numbers(10, 20, 30, 99)]
    curve = piecewise_curve(xs, ys)
    assert list(curve.x) == [5]
    assert list(curve.middle) == [(4 + 20) / 2]
    greatest = piecewise_curve(xs, ys, "max")
    assert list(greatest.middle) == [(7 + 30) / 2]


def test_one_report_is_no_curve() -> None:
    one = numbers(1)
    for curve in (piecewise_curve([one], [one]), piecewise_curve([], []), rate_curve([one], [one])):
        assert len(curve.x) == 0
    assert len(rate_curve([numbers(1, 1)], [numbers(2, 3)]).x) == 0
