"""The picture of a sweep's scores."""

import itertools

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from optuna.distributions import FloatDistribution
from optuna.trial import create_trial

from actorlearner.sweep.results import _draw_parameter
from actorlearner.sweep.space import Parameter

RATE = "agent.learning_rate"


@pytest.mark.parametrize("values", [(3e-4, 5e-3), (6e-4, 9e-4), (1e-6, 0.7), (2e-5, 3e-2), (1e-3, 1e-3)])
def test_labels_of_a_log_scale_do_not_overlap(values):
    range_ = FloatDistribution(1e-7, 1, log=True)
    trials = [create_trial(value=0.0, params={RATE: value}, distributions={RATE: range_}) for value in values]
    figure = Figure(figsize=(3.2, 3.2))
    axis = figure.subplots()

    _draw_parameter(axis, trials, Parameter(RATE, (RATE,), "file", low=1e-7, high=1, log=True))

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    low, high = axis.get_xlim()
    labels = [
        label
        for label in axis.get_xticklabels(which="both")
        if label.get_text() and low <= label.get_position()[0] <= high
    ]
    boxes = sorted(label.get_window_extent(canvas.get_renderer()).extents.tolist() for label in labels)
    assert boxes
    assert all(left[2] < right[0] for left, right in itertools.pairwise(boxes))
