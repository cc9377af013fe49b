"""Pictures: their panels, units, names and colours, and that no two numbers of an axis touch."""

import itertools
from pathlib import Path

import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from actorlearner.inspect.plot.draw_panel import tick_text
from actorlearner.inspect.plot.figure import COLOURS, make_figure, rendered
from actorlearner.inspect.plot.runs import RecordedRun, read_runs
from actorlearner.inspect.plot.write_plot import write_table
from tests.support.recorded_run import evaluation, recorded_run, report, trained_run

LAYOUT = "replay.layout=trajectory"


@pytest.fixture(name="runs", scope="module")
def _runs(tmp_path_factory: pytest.TempPathFactory) -> list[RecordedRun]:
    """Five seeds with the packed layout, one with the other, and one in another environment."""
    path = tmp_path_factory.mktemp("runs")
    packed = [trained_run(path / f"packed{seed}", f"seed={seed}", gain=1 + seed) for seed in range(5)]
    trajectory = trained_run(path / "trajectory", LAYOUT, gain=4)
    cheetah = trained_run(path / "cheetah", config="sac_halfcheetah")
    return read_runs([*packed, trajectory, cheetah], pytest.fail)


@pytest.fixture(name="panels", scope="module")
def _panels(runs: list[RecordedRun]) -> list[Axes]:
    return drawn(make_figure(runs))


def drawn(figure: Figure) -> list[Axes]:
    """The panels of a figure that was laid out."""
    FigureCanvasAgg(figure).draw()
    return figure.get_axes()


def test_axes_have_names_and_units(panels: list[Axes]) -> None:
    assert [panel.get_xlabel() for panel in panels[:6]] == [
        "env steps",
        "train steps",
        "wall-clock time while running (s)",
        "wall-clock time while running (s)",
        "train steps",
        "train steps",
    ]
    assert [panel.get_ylabel() for panel in panels[:6]] == [
        "return of the greedy policy",
        "",
        "",
        "throughput (steps/s)",
        "staleness (train steps)",
        "samples per insert (transitions)",
    ]


def test_environments_have_panels_of_their_own(panels: list[Axes], runs: list[RecordedRun]) -> None:
    assert len(panels) == 12
    assert [len(panel.lines) for panel in panels[:3] + panels[6:9]] == [2, 2, 2, 1, 1, 1]
    assert len(make_figure(runs[:2]).get_axes()) == 6


def test_curves_are_what_was_recorded(panels: list[Axes]) -> None:
    packed, trajectory = panels[1].lines
    # The average return of a train step is 1.5 times the gain, which is 1 to 5 (without 1 and 5: 3), or 4.
    assert list(packed.get_xdata()) == list(trajectory.get_xdata()) == [0, 500, 1_000]
    assert list(packed.get_ydata()) == [0, 2_250, 4_500]
    assert list(trajectory.get_ydata()) == [0, 3_000, 6_000]
    assert list(panels[2].lines[0].get_xdata()) == [0, 50, 100]
    train, env = panels[3].lines[:2]
    assert list(train.get_ydata()) == pytest.approx([10] * len(train.get_xdata()))
    assert list(env.get_ydata()) == pytest.approx([10] * len(env.get_xdata()))
    mean, greatest = panels[4].lines[:2]
    assert set(mean.get_ydata()) == {5}
    assert set(greatest.get_ydata()) == {10}
    assert set(panels[5].lines[0].get_ydata()) == {64}
    assert set(panels[5].lines[-1].get_ydata()) == {256}  # One update an env step, in batches of 256.


def test_all_that_is_drawn_is_inside_its_panel(panels: list[Axes]) -> None:
    for panel in panels:
        lowest, highest = panel.get_ylim()
        drawn_y = [float(y) for line in panel.lines for y in line.get_ydata()]
        drawn_y += [y for band in panel.collections for path in band.get_paths() for y in path.vertices[:, 1]]
        assert lowest <= min(drawn_y)
        assert max(drawn_y) < highest
    assert set(panels[0].get_shared_y_axes().get_siblings(panels[0])) == set(panels[:3])


def test_each_group_has_a_colour_in_all_panels(panels: list[Axes]) -> None:
    for panel in panels[:3]:
        assert [to_hex(line.get_color()).upper() for line in panel.lines] == list(COLOURS[:2])
        assert [to_hex(band.get_facecolor()[0]).upper() for band in panel.collections] == [COLOURS[0]]


def test_the_legend_names_what_differs(runs: list[RecordedRun]) -> None:
    figure = make_figure(runs)
    legends = [block.legends[0] for block in figure.subfigs]
    assert [[text.get_text() for text in legend.get_texts()] for legend in legends] == [
        ["replay.layout: packed (5 seeds)", "replay.layout: trajectory (seed 0)"],
        ["seed 0"],
    ]
    assert legends[0].get_title().get_text() == (
        "returns: interquartile mean over runs with its 95 % bootstrap band, "
        "or the mean of one run's episodes, with its 95 % bootstrap band if they are five or more"
    )


def test_fewer_than_five_seeds_are_a_line_each_without_a_band(runs: list[RecordedRun]) -> None:
    figure = make_figure(runs[:4])
    for panel in drawn(figure)[:3]:
        assert [list(line.get_ydata()) for line in panel.lines] == [
            [0, 750 * gain, 1_500 * gain] for gain in (1, 2, 3, 4)
        ]
        assert list(panel.collections) == []
    assert figure.subfigs[0].legends[0].get_title().get_text() == "returns: a line for each run"


def test_panels_of_returns_report_that_evaluation_is_off(tmp_path: Path) -> None:
    run = recorded_run(tmp_path / "run", "evaluate.interval=null", training=[report(t, t) for t in (2, 4)])
    lines: list[str] = []
    panels = drawn(make_figure(read_runs([run], lines.append)))
    assert lines == ["run: evaluation is off, so it has no returns to draw"]
    assert [[text.get_text() for text in panel.texts] for panel in panels[:4]] == [
        *[["evaluation is off"]] * 3,
        [],
    ]


def test_each_metric_of_info_has_a_panel(tmp_path: Path) -> None:
    values = {"energy": [[1.0, 3.0], [None, 5.0], [None, None]], "absent": [[None, None]] * 3}
    run = recorded_run(
        tmp_path / "run",
        "environment.info_metrics=[energy, absent]",
        evaluations=[
            evaluation(t, t, [1.0, 2.0])
            | {"info": {name: of_metric[t] for name, of_metric in values.items()}}
            for t in range(3)
        ],
    )
    runs = read_runs([run], pytest.fail)
    panels = drawn(make_figure(runs))
    assert len(panels) == 9
    energy, absent, unused = panels[6:]
    assert (energy.get_xlabel(), energy.get_ylabel()) == ("env steps", "energy (greedy policy)")
    assert [list(line.get_xdata()) for line in energy.lines] == [[0, 1]]
    assert [list(line.get_ydata()) for line in energy.lines] == [[2.0, 5.0]]
    assert [text.get_text() for text in absent.texts] == ["nothing recorded"]
    assert not unused.axison
    write_table(runs, tmp_path / "plot.csv")
    assert [line for line in (tmp_path / "plot.csv").read_text().splitlines() if "energy" in line] == [
        "sac on Pendulum-v1,seed 0,run,energy,env_steps,0.0,2.0,,",
        "sac on Pendulum-v1,seed 0,run,energy,env_steps,1.0,5.0,,",
    ]


@pytest.mark.parametrize("last_step", [1_000, 99_999, 999_999, 1_000_001, 123_456_789])
def test_numbers_of_an_axis_do_not_touch(tmp_path: Path, last_step: int) -> None:
    steps = [0, last_step // 2, last_step]
    run = recorded_run(
        tmp_path / "run",
        evaluations=[evaluation(t, step, [-1e5, 1e5 * t]) for t, step in enumerate(steps)],
        training=[report(t, step) for t, step in enumerate(steps)],
    )
    for panel in drawn(make_figure(read_runs([run], pytest.fail))):
        labels = [label.get_window_extent() for label in panel.get_xticklabels() if label.get_text()]
        assert len(labels) >= 2
        assert all(left.x1 + 2 < right.x0 for left, right in itertools.pairwise(labels))


def test_many_steps_are_counted_in_millions(tmp_path: Path) -> None:
    run = recorded_run(
        tmp_path / "run", evaluations=[evaluation(t, 3_000_000 * t, [1.0], env_steps=100 * t) for t in (0, 1)]
    )
    env_steps, train_steps = drawn(make_figure(read_runs([run], pytest.fail)))[:2]
    assert env_steps.get_xlabel() == "env steps"
    assert train_steps.get_xlabel() == "train steps (millions)"
    assert [label.get_text() for label in train_steps.get_xticklabels()][:4] == ["0", "1", "2", "3"]


def test_thousands_are_separated() -> None:
    numbers = [tick_text(value) for value in (0, 1_000, 1_234_567, -2_500, 0.25, 2.5)]
    assert numbers == ["0", "1,000", "1,234,567", "\N{MINUS SIGN}2,500", "0.25", "2.5"]


def test_a_run_that_has_just_begun_is_drawn(tmp_path: Path) -> None:
    run = recorded_run(tmp_path / "run", evaluations=[evaluation(1, 0, [3.0])])
    panels = drawn(make_figure(read_runs([run], pytest.fail)))
    assert [[text.get_text() for text in panel.texts] for panel in panels] == [
        [],
        [],
        [],
        ["nothing recorded"],
        ["nothing recorded"],
        ["nothing recorded"],
    ]


def test_equal_runs_give_equal_files(runs: list[RecordedRun]) -> None:
    assert rendered(make_figure(runs[:1]), "svg") == rendered(make_figure(runs[:1]), "svg")
    assert rendered(make_figure(runs[:1]), "png").startswith(b"\x89PNG")


def test_names_are_no_formulas(tmp_path: Path) -> None:
    name = "environment.kwargs.path=$HOME/a_$b^$c$"
    runs = [trained_run(tmp_path / "with", name), trained_run(tmp_path / "without")]
    figure = make_figure(read_runs(runs, pytest.fail))
    drawn(figure)
    assert [text.get_text() for text in figure.subfigs[0].legends[0].get_texts()] == [
        "environment.kwargs.path: $HOME/a_$b^$c$ (seed 0)",
        "environment.kwargs.path: absent (seed 0)",
    ]
