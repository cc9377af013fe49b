"""The results of a sweep: lines to print, a table, a picture, and the best configuration as a YAML file."""

import csv
import io
import math
from collections.abc import Iterator
from pathlib import Path

import optuna
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter
from optuna.trial import FrozenTrial, TrialState

from actorlearner.agents.configuration import load_config
from actorlearner.config.resolved import to_yaml
from actorlearner.inspect.plot.figure import COLOURS
from actorlearner.records.disk import write_atomically
from actorlearner.records.formatting import duration, plural, return_text
from actorlearner.sweep.space import Parameter
from actorlearner.sweep.trial import FAILURE, SCORED_EVALUATIONS, SweepSettings

BEST = "best.yaml"
TABLE = "trials.csv"
PICTURE = "sweep.png"

_SHOWN = 10
_COLUMNS = 3
_PANEL_INCHES = 3.2


def outcome(study: optuna.Study, trial: FrozenTrial) -> str:
    """Returns a line about a trial that has ended."""
    if FAILURE in trial.user_attrs:
        return f"trial {trial.number}: failed: {trial.user_attrs[FAILURE]}"
    if trial.state is TrialState.PRUNED:
        return f"trial {trial.number}: pruned: below the median of the trials before it"
    best = study.best_trial
    score, highest = return_text(_value(trial)), return_text(_value(best))
    return f"trial {trial.number}: score {score}; best {highest} of trial {best.number}"


def table_lines(study: optuna.Study, settings: SweepSettings) -> Iterator[str]:
    """Yields a line for each of the best trials, best first, then the numbers of complete and pruned ones."""
    trials = study.get_trials(deepcopy=False)
    complete = sorted(_complete(trials), key=_value, reverse=True)
    for trial in complete[:_SHOWN]:
        values = ", ".join(f"{each.name} {each.text(trial.params[each.name])}" for each in settings.space)
        yield f"{return_text(_value(trial)):>10}  trial {trial.number:<4} {values}"
    pruned = sum(trial.state is TrialState.PRUNED for trial in trials)
    yield f"{plural(len(complete), 'trial')} complete, {pruned} pruned"


def write_results(study: optuna.Study, settings: SweepSettings, directory: Path) -> None:
    """Writes trials.csv, sweep.png and best.yaml, the last two once a trial is complete."""
    trials = study.get_trials(deepcopy=False)
    write_atomically(directory / TABLE, _table(trials, settings).encode())
    if not _complete(trials):
        return
    write_atomically(directory / PICTURE, _picture(trials, settings))
    write_atomically(directory / BEST, _best_yaml(study.best_trial, settings).encode())


def _best_yaml(best: FrozenTrial, settings: SweepSettings) -> str:
    """Returns the configuration of a trial, with a comment that says where it comes from."""
    drawn = []
    for parameter in settings.space:
        drawn += parameter.overrides(best.params[parameter.name])
    config = load_config(settings.config_file, [*settings.overrides, *drawn])
    seeds = f"{settings.seeds} seed{'s' * (settings.seeds > 1)}"
    return (
        f"# Trial {best.number} of a sweep: {return_text(_value(best))}, the mean of the last "
        f"{SCORED_EVALUATIONS} evaluations of {seeds}.\n# Searched: {'; '.join(drawn)}\n{to_yaml(config)}"
    )


def _complete(trials: list[FrozenTrial]) -> list[FrozenTrial]:
    return [trial for trial in trials if trial.state is TrialState.COMPLETE]


def _value(trial: FrozenTrial) -> float:
    assert trial.value is not None
    return trial.value


def _table(trials: list[FrozenTrial], settings: SweepSettings) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["trial", "state", "score", "train_steps", "time", *(each.name for each in settings.space)]
    )
    for trial in trials:
        score = _value(trial) if trial.state is TrialState.COMPLETE else ""
        last = max(trial.intermediate_values, default="")
        time = "" if trial.duration is None else duration(trial.duration.total_seconds())
        values = [each.text(trial.params[each.name]) for each in settings.space if each.name in trial.params]
        writer.writerow([trial.number, trial.state.name.lower(), score, last, time, *values])
    return text.getvalue()


def _picture(trials: list[FrozenTrial], settings: SweepSettings) -> bytes:
    """Draws the scores in order, and against each parameter; returns a PNG file."""
    panels = 1 + len(settings.space)
    rows, columns = math.ceil(panels / _COLUMNS), min(panels, _COLUMNS)
    figure = Figure(figsize=(_PANEL_INCHES * columns, _PANEL_INCHES * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False, sharey=True).flat)
    _draw_history(axes[0], _complete(trials))
    for axis, parameter in zip(axes[1:], settings.space, strict=False):
        _draw_parameter(axis, _complete(trials), parameter)
    for axis in axes[panels:]:
        axis.set_axis_off()
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110)
    return file.getvalue()


def _draw_history(axis: Axes, trials: list[FrozenTrial]) -> None:
    numbers, scores = [trial.number for trial in trials], [_value(trial) for trial in trials]
    axis.plot(numbers, scores, "o", color=COLOURS[0], label="score")
    best = [max(scores[: i + 1]) for i in range(len(scores))]
    axis.step(numbers, best, where="post", color=COLOURS[1], label="best so far")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_xlabel("trial")
    axis.set_ylabel("score")
    axis.legend()


def _draw_parameter(axis: Axes, trials: list[FrozenTrial], parameter: Parameter) -> None:
    values = [trial.params[parameter.name] for trial in trials]
    if parameter.choices:
        axis.set_xticks(range(len(parameter.choices)), parameter.choices)
        values = [parameter.choices.index(value) for value in values]
    elif parameter.log:
        _set_log_scale(axis, values)
    axis.plot(values, [_value(trial) for trial in trials], "o", color=COLOURS[0])
    axis.set_xlabel("\n".join(parameter.keys), fontsize=8)


def _set_log_scale(axis: Axes, values: list[float]) -> None:
    """Sets a logarithmic scale with so few labels that they do not overlap."""
    axis.set_xscale("log")
    ratio = max(values) / min(values)
    if ratio < 4:
        axis.xaxis.set_major_locator(MaxNLocator(3))
    else:
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if ratio < 100 else (1,)))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_formatter(NullFormatter())
