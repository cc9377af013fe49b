"""A replay server that was started by hand: its last checkpoint, and the x axis of its curves."""

import dataclasses
import logging
import signal
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from actorlearner.agents.experience import Experience, Iteration
from actorlearner.config.schema import Config
from actorlearner.process.stop import Stop
from actorlearner.records.run_directory import RunDirectory
from actorlearner.replay.status import ReplayStatus
from actorlearner.roles import replay_server


@pytest.mark.parametrize("gives_up", [False, True])
def test_the_last_save_takes_its_time_unless_ctrl_c_gives_up(
    gives_up: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(replay_server, "_SAVING_NOTICE_S", 0.01)
    stop, allowed, saved = Stop(), threading.Event(), threading.Event()
    stop._handle(signal.SIGINT, None)  # What has ended the role.

    class Person(logging.Handler):
        """Reads the first line, and presses Ctrl-C or waits."""

        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith("saving replay; Ctrl-C gives up"):
                if gives_up:
                    stop._handle(signal.SIGINT, None)
                else:
                    allowed.set()

    def save() -> bool:
        assert allowed.wait(60)
        saved.set()
        return True

    person = Person()
    replay_server._log.addHandler(person)
    replay_server._log.setLevel(logging.INFO)
    try:
        assert replay_server.save_last(save, stop) is not gives_up
    finally:
        replay_server._log.removeHandler(person)
        allowed.set()
    assert saved.is_set() or gives_up
    assert any("replay was not saved" in line for line in caplog.messages) is gives_up


@pytest.mark.parametrize(
    ("experience", "train_step"),
    [
        (Experience(), 6),
        (Experience(4, 4, iteration=Iteration(env_steps=24, epochs=3, max_policy_lag=0)), 18),
    ],
    ids=["drawn again and again", "in iterations of three epochs"],
)
def test_its_curves_are_over_train_steps(
    experience: Experience,
    train_step: int,
    small_config: Config,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = dataclasses.replace(small_config, learn=dataclasses.replace(small_config.learn, batch_size=8))
    directory = RunDirectory(tmp_path)
    directory.metrics("replay").parent.mkdir()
    written: list[int] = []
    summaries = SimpleNamespace(scalars=lambda values, step: written.append(step), flush=lambda: None)
    monkeypatch.setattr(replay_server, "Summaries", lambda directory: summaries)
    server = SimpleNamespace(
        status=lambda timeout_s: ReplayStatus(size=48, inserts=48, samples=48),
        layout=SimpleNamespace(experience=experience),
    )
    stop = Stop()
    stop.request()  # It still writes the last record.
    records = replay_server._Records(server, config, directory)
    replay_server._serve(records, lambda: True, None, SimpleNamespace(), stop)
    assert written == [train_step]


def test_the_log_names_the_limits_that_apply(small_config: Config) -> None:
    replay = dataclasses.replace(small_config.replay, min_size=1_000, updates_per_env_step=0.5)
    limits = "sampling from 1000 transitions on, 0.5 train steps for each env step"
    assert replay_server._describe(replay, Experience()) == limits
    on_policy = Experience(4, 4, iteration=Iteration(env_steps=24, epochs=3, max_policy_lag=0))
    assert replay_server._describe(replay, on_policy) == "each sequence is sampled once"


@pytest.mark.parametrize(
    ("answers", "interval_s", "saves"), [(True, 0.0, 1), (False, 0.0, 0), (True, 1e9, 0), (True, None, 0)]
)
def test_a_checkpoint_is_written_when_it_is_due(
    answers: bool, interval_s: float | None, saves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stops = iter([False, True])
    monkeypatch.setattr(replay_server, "_save_last_policies_until_next_record", lambda *_: next(stops))
    saved: list[bool] = []
    records = SimpleNamespace(write=lambda: answers)
    replay_server._serve(records, lambda: saved.append(True), interval_s, SimpleNamespace(), Stop())
    assert len(saved) == saves  # `run` writes the one at the stop.
