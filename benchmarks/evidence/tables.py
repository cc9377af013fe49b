"""The tables and the picture that the docs show of the kept curves."""

import re
import shlex
from collections.abc import Sequence

from matplotlib.figure import Figure

from actorlearner.inspect.plot.figure import COLOURS
from actorlearner.records.formatting import decimals
from benchmarks.evidence.curves import Curve
from benchmarks.support import markdown


def comparison(curves: Sequence[Curve]) -> list[str]:
    """Returns a Markdown table: all runs at equal env steps, at equal minutes, and at their ends.

    Below it are how often runs fell, and the commands, each once, with the commit and the machine.
    """
    env_step = min(curve.env_steps[-1] for curve in curves)
    minute = min(curve.minutes[-1] for curve in curves)
    header = ("agent", "seed", f"at {env_step:,} env steps", f"after {minute:.1f} minutes",
              "at the end", "best policy")  # fmt: skip
    lines = markdown.table(header, [_row(curve, env_step, minute) for curve in curves])
    lines += ["", _falls(curves), ""]
    for curve in curves:
        command = f"    {re.sub('seed=[0-9]+', 'seed=SEED', curve.facts['command'])}"
        if command not in lines:
            lines.append(command)
    return [*lines, "", *_folded("Commits and machines", _sources(curves))]


def endings(tasks: Sequence[Sequence[Curve]]) -> list[str]:
    """Returns a Markdown table with the returns of all runs, a row for each task.

    Args:
      tasks: the runs of each task, which differ in nothing but the seed.
    """
    header = ("configuration", "seed: AverageReturn at the end (best)", "env steps", "minutes")
    lines = markdown.table(header, [_ending(curves) for curves in tasks])
    curves = [curve for task in tasks for curve in task]
    return [*lines, "", _falls(curves), "", *_folded("Commits and machines", _sources_of_tasks(tasks))]


def _folded(title: str, lines: Sequence[str]) -> list[str]:
    """Returns lines that a page shows on a click."""
    return [f'<details markdown="1"><summary>{title}</summary>', "", *lines, "", "</details>"]


def _ending(curves: Sequence[Curve]) -> tuple[str, ...]:
    digits = decimals(*(max(curve.returns, key=abs) for curve in curves))
    returns = "; ".join(
        f"{curve.seed}: {curve.returns[-1]:.{digits}f} ({max(curve.returns):.{digits}f})" for curve in curves
    )
    minutes = sorted(curve.minutes[-1] for curve in curves)
    shown = dict.fromkeys(f"{each:.1f}" for each in (minutes[0], minutes[-1]))  # One if they round alike.
    return (
        _configuration(curves[0].facts["command"]),
        returns,
        f"{max(curve.env_steps[-1] for curve in curves):,}",
        " to ".join(shown),
    )


def _configuration(command: str) -> str:
    """Returns the configuration and the settings of a command, without the seed."""
    config, *settings = [word for word in shlex.split(command)[2:] if not word.startswith(("--", "seed="))]
    return f"`{config}`" + (f" with `{' '.join(settings)}`" if settings else "")


def _falls(curves: Sequence[Curve]) -> str:
    falls = sum(curve.falls() for curve in curves)
    all_of_them = sum(len(curve.second_half()) for curve in curves)
    return (
        f"In the second halves of these runs, {falls} of {all_of_them} evaluations returned at most what the "
        "untrained policy did."
    )


def _sources(curves: Sequence[Curve]) -> list[str]:
    """Returns the commit, date and machine of the runs, each once."""
    return sorted({f"Commit {_source(curve)}." for curve in curves})


def _sources_of_tasks(tasks: Sequence[Sequence[Curve]]) -> list[str]:
    """Returns a list of the commits, dates and machines, each with the configurations that ran there."""
    configurations: dict[str, list[str]] = {}
    for curves in tasks:
        for source in dict.fromkeys(map(_source, curves)):
            seeds = ", ".join(str(curve.seed) for curve in curves if _source(curve) == source)
            some = f" (seed {seeds})" if len({_source(curve) for curve in curves}) > 1 else ""
            configurations.setdefault(source, []).append(_configuration(curves[0].facts["command"]) + some)
    return [f"- {'; '.join(names)}: commit {source}." for source, names in configurations.items()]


def _source(curve: Curve) -> str:
    return f"{curve.facts['commit']}, {curve.facts['date']}, {curve.facts['machine']}"


def _row(curve: Curve, env_step: int, minute: float) -> tuple[str, ...]:
    digits = decimals(*curve.returns)
    end = (
        f"{curve.returns[-1]:.{digits}f} ({curve.env_steps[-1]:,} env steps, {curve.minutes[-1]:.1f} minutes)"
    )
    return (
        curve.agent,
        str(curve.seed),
        f"{curve.at_env_step(env_step):.{digits}f}",
        f"{curve.at_minute(minute):.{digits}f}",
        end,
        curve.facts["best"],
    )


def picture(curves: Sequence[Curve]) -> Figure:
    """Draws all curves against env steps and against minutes, a colour for each agent."""
    figure = Figure(figsize=(8.5, 3.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    colours = dict(zip(dict.fromkeys(curve.agent for curve in curves), COLOURS, strict=False))
    labelled: set[str] = set()
    for curve in curves:
        label = None if curve.agent in labelled else curve.agent
        labelled.add(curve.agent)
        panels[0].plot(curve.env_steps, curve.returns, color=colours[curve.agent], label=label)
        panels[1].plot(curve.minutes, curve.returns, color=colours[curve.agent])
    panels[0].set_xlabel("env steps")
    panels[0].set_ylabel("AverageReturn")
    panels[0].legend()
    panels[1].set_xlabel("minutes")
    return figure
