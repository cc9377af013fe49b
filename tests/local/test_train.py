"""The beginning of a run, with a supervisor that starts no roles."""

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from actorlearner.agents.configuration import load_config
from actorlearner.errors import RunError
from actorlearner.local.train import begin_run, watch_run
from actorlearner.process.stop import Stop
from actorlearner.records.events import EventLog, read_events
from actorlearner.records.metrics import MetricsWriter
from actorlearner.records.run_directory import RunDirectory


class _Supervisor(SimpleNamespace):
    finished = False
    unready: tuple[str, ...] = ()

    def check(self) -> None:
        raise RunError("learner died")

    def shut_down(self, *_: Any) -> None:
        """No-op."""


def test_a_run_has_begun_or_resumed_once_its_roles_are_started(tmp_path: Path) -> None:
    config, console = load_config("td3_pendulum"), Console(file=io.StringIO())
    for _ in range(2):
        directory = RunDirectory(tmp_path)
        known = read_events(directory.events)
        progress = begin_run(config, directory, console)
        assert progress is not None
        assert read_events(directory.events) == known  # Starting the roles may fail.
        supervisor: Any = _Supervisor(events=EventLog(directory.events, "local"))
        with pytest.raises(RunError):
            watch_run(supervisor, progress, Stop(), console)
    events = [event["event"] for event in read_events(directory.events)]
    assert events == ["run began", "failed", "run resumed", "failed"]


def test_an_evaluation_that_ends_after_the_last_poll_is_printed(tmp_path: Path) -> None:
    config, out, directory = load_config("td3_pendulum"), io.StringIO(), RunDirectory(tmp_path)
    console = Console(file=out, width=80)
    progress = begin_run(config, directory, console)
    assert progress is not None

    def shut_down(*_: Any) -> None:
        evaluation = {"train_step": 7, "average_return": -3.0, "average_episode_length": 200.0}
        MetricsWriter(directory.metrics("eval")).write(evaluation)

    supervisor: Any = SimpleNamespace(
        finished=True, start_ups={}, events=EventLog(directory.events, "local"), shut_down=shut_down
    )
    assert watch_run(supervisor, progress, Stop(), console) == 0
    assert "train step 7: AverageReturn -3.00, AverageEpisodeLength 200.0\n" in out.getvalue()
