"""The view at 80 columns, on a terminal and elsewhere, and the summary."""

import dataclasses
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from actorlearner.agents.configuration import load_config
from actorlearner.agents.sac import SacConfig
from actorlearner.config.schema import Config, EvaluateConfig
from actorlearner.local.progress import Progress
from actorlearner.local.view import View, summary_lines
from actorlearner.process import heartbeat
from actorlearner.records.formatting import duration
from actorlearner.records.metrics import MetricsWriter
from actorlearner.records.run_directory import RunDirectory

_CONFIG = Config(agent=SacConfig())


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[RunDirectory]:
    directory = RunDirectory(tmp_path)
    directory.prepare(_CONFIG)
    heartbeat.begin(directory.heartbeat("learner"))
    yield directory
    heartbeat.end()


@pytest.fixture
def progress(directory: RunDirectory) -> Progress:
    """A run in its middle, with figures as wide as they get."""
    progress = Progress(_CONFIG, directory)
    evaluation = {"average_return": -1234.56, "average_episode_length": 1000.0, "returns": [0.0] * 20}
    for name, record in (
        ("learner", {"train_step": 98_765, "train_steps_per_s": 1234.5}),
        ("collect-0", {"env_steps": 133_450, "env_steps_per_s": 1234.5, "average_return": -1234.56}),
        ("replay", {"size": 133_450}),
        ("eval", {"train_step": 0, "average_return": -1500.0, **evaluation}),
        ("eval", {"train_step": 90_000, **evaluation}),
    ):
        writer = MetricsWriter(directory.metrics(name))
        writer.write(record)
    return progress


def show(progress: Progress, unready: list[str], *, terminal: bool) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=80, color_system=None, highlight=False)
    with View(console, progress) as view:
        view.update(unready)
    return out.getvalue()


def test_plain_lines_have_all_figures(progress: Progress) -> None:
    evaluated_first, evaluated, now = show(progress, [], terminal=False).splitlines()
    assert evaluated_first.startswith("train step 0: ")
    assert evaluated == ("train step 90,000: AverageReturn -1234.56, AverageEpisodeLength 1000.0")
    assert now == (
        "train step 98,765 of 100,000, 1,234 train steps/s, 1,234 env steps/s, replay 133,450 (13 %), "
        "last return -1234.56 (train step 90,000), 0:00:01 left"
    )


def test_plain_lines_name_the_starting_roles(directory: RunDirectory) -> None:
    assert show(Progress(_CONFIG, directory), ["learner"], terminal=False) == "starting: learner\n"


def test_plain_lines_have_figures_while_an_actor_starts_late(progress: Progress) -> None:
    now = show(progress, ["collect-actor-7"], terminal=False).splitlines()[-1]
    assert now.startswith("train step 98,765 of 100,000, 1,234 train steps/s, ")
    assert now.endswith(" 0:00:01 left, starting: collect-actor-7")


def test_plain_lines_come_every_ten_seconds(progress: Progress) -> None:
    out = io.StringIO()
    view = View(Console(file=out, force_terminal=False, width=80), progress)
    view.update([])
    before = out.getvalue()
    view.update([])
    assert out.getvalue() == before


def test_the_live_view_fits_80_columns(progress: Progress) -> None:
    text = show(progress, ["eval-actor"], terminal=True)
    for part in ("98,765", "1,234 train steps/s", "replay 133,450 (13 %)", "starting: eval-actor", "left"):
        assert part in text
    pictured = text[text.index("98,765 of") - len("train step ") :]
    assert all(len(line) <= 80 + len("\x1b[2K\r") * 6 for line in pictured.splitlines())


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (0, "0:00:00"), (59.6, "0:01:00"), (3_723, "1:02:03"), (360_000, "100:00:00")],
)
def test_duration(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_the_summary_names_first_best_and_last(progress: Progress, directory: RunDirectory) -> None:
    progress.update()
    progress.new_evaluations()
    progress.evaluations[0]["average_return"] = -1500.0
    start_ups = {"learner": "imports 2.5 s, policies 1.0 s", "collect-actor-10": "imports 2.6 s"}
    returns, totals, start_up, learner, actor, rates, *files = summary_lines(progress, start_ups)
    assert "first -1500.00" in returns
    assert "best -1234.56 at train step 90,000" in returns
    assert "last -1234.56 at train step 90,000" in returns
    assert "98,765 train steps, 133,450 env steps" in totals
    assert re.search(r"first env step after -?\d+\.\d s, first train step after -?\d+\.\d s", start_up)
    assert learner.split(maxsplit=1) == ["learner", "imports 2.5 s, policies 1.0 s"]
    assert actor.split(maxsplit=1) == ["collect-actor-10", "imports 2.6 s"]
    assert "train steps/s" in rates
    assert files[0].endswith(str(directory.path))
    assert [line.split()[0] for line in files[1:]] == ["metrics"]  # Only existing directories are listed.


def test_of_equal_evaluations_the_summary_names_the_last(progress: Progress, directory: RunDirectory) -> None:
    """The last of equal ones is also the one that is kept as the best policy."""
    writer = MetricsWriter(directory.metrics("eval"))
    writer.write({"train_step": 95_000, "average_return": -1234.56, "average_episode_length": 1000.0})
    progress.update()
    progress.new_evaluations()
    assert "best -1234.56 at train step 95,000" in next(summary_lines(progress, {}))


def test_the_summary_of_a_run_that_evaluated_nothing(directory: RunDirectory) -> None:
    progress = Progress(_CONFIG, directory)
    assert next(iter(summary_lines(progress, {}))).startswith("totals")


def test_a_run_without_evaluation_shows_that_it_is_off(tmp_path: Path) -> None:
    config = dataclasses.replace(_CONFIG, evaluate=EvaluateConfig(interval=None))
    directory = RunDirectory(tmp_path)
    directory.prepare(config)
    progress = Progress(config, directory)
    assert ", evaluation is off, " in show(progress, [], terminal=False)
    assert next(summary_lines(progress, {})) == "AverageReturn  evaluation is off"


def test_the_queue_of_experience_that_is_consumed_once_is_not_shown(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    config = load_config("ppo_cartpole")
    directory.prepare(config)
    MetricsWriter(directory.metrics("replay")).write({"size": 0})
    assert "replay" not in show(Progress(config, directory), [], terminal=False)
