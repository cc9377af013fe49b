"""Callbacks are called in order; neither exceptions in them nor slow ones harm their role."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from actorlearner.agents.configuration import load_config
from actorlearner.callbacks import Callback, Checkpoint, Context, Episode, Evaluation, Publication, caller
from actorlearner.callbacks.caller import Callbacks, find_callback
from actorlearner.errors import ConfigurationError, RunError
from actorlearner.process.heartbeat import LONG_PATIENCE_S
from actorlearner.records.run_directory import RunDirectory

HERE = __name__
EPISODE = Episode(environment=0, episode_return=1.0, length=2, env_steps=3, train_step=4)
EVENTS = [EPISODE, Evaluation(1, 2, [3.0], [4]), Publication(5, 0), Checkpoint(6, Path("ckpt-6"))]


class Recorder(Callback):
    calls: ClassVar[list[object]] = []

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.calls.append(context.role)

    def on_episode(self, episode: Episode) -> None:
        self.calls.append(("on_episode", episode))

    def on_evaluation(self, evaluation: Evaluation) -> None:
        self.calls.append(("on_evaluation", evaluation))

    def on_publish(self, publication: Publication) -> None:
        self.calls.append(("on_publish", publication))

    def on_checkpoint(self, checkpoint: Checkpoint) -> None:
        self.calls.append(("on_checkpoint", checkpoint))

    def close(self) -> None:
        self.calls.append("closed")


class Raising(Callback):
    def on_episode(self, episode: Episode) -> None:
        raise ValueError("no episodes, please")

    def close(self) -> None:
        raise OSError("it does not close")


class Unmakable(Callback):
    def __init__(self, context: Context) -> None:
        raise KeyError("no API key")


class Stuck(Callback):
    go_on: ClassVar[threading.Event] = threading.Event()

    def on_episode(self, episode: Episode) -> None:
        self.go_on.wait()


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    Recorder.calls.clear()
    Stuck.go_on.clear()
    yield
    Stuck.go_on.set()


@pytest.fixture(name="warnings")
def _warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(caller, "warn", lines.append)
    return lines


@pytest.fixture(name="directory")
def _directory(tmp_path: Path) -> RunDirectory:
    directory = RunDirectory(tmp_path / "run")
    directory.prepare(load_config("sac_pendulum"))
    return directory


def callbacks(*names: str) -> Callbacks:
    configured = ", ".join(f"'{HERE}:{name}'" for name in names)
    return Callbacks(load_config("sac_pendulum", [f"callbacks=[{configured}]"]), "learner")


def test_every_event_reaches_its_hook_in_order(directory: RunDirectory, warnings: list[str]) -> None:
    called = callbacks("Recorder")
    called.notify(EPISODE)  # Before the beginning.
    called.begin(directory)
    for event in EVENTS:
        called.notify(event)
    called.close(stopped=False)
    hooks = ["on_episode", "on_evaluation", "on_publish", "on_checkpoint"]
    assert Recorder.calls == ["learner", *zip(hooks, EVENTS, strict=True), "closed"]
    assert warnings == []


def test_the_context_names_the_run(directory: RunDirectory) -> None:
    called = callbacks("Recorder")
    called.begin(directory)
    called.close(stopped=True)
    (callback,) = called._callbacks.values()
    context = callback.context
    assert (context.role, context.run_id, context.run_dir) == ("learner", directory.run_id, directory.path)
    assert context.config.environment.name == "Pendulum-v1"


def test_an_exception_is_reported_once_and_the_others_are_called(
    directory: RunDirectory, warnings: list[str]
) -> None:
    called = callbacks("Raising", "Recorder")
    called.begin(directory)
    for _ in range(3):
        called.notify(EPISODE)
    called.close(stopped=False)
    assert Recorder.calls == ["learner", *[("on_episode", EPISODE)] * 3, "closed"]
    assert warnings == [
        f"callback {HERE}:Raising.on_episode raised ValueError: no episodes, please; the run continues",
        f"callback {HERE}:Raising.close raised OSError: it does not close; the run continues",
    ]


def test_creating_a_callback_may_take_longer_than_other_steps(
    directory: RunDirectory, patience_s: Callable[[], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may connect to a server, and the role writes no heartbeat meanwhile."""
    found: list[float] = []
    monkeypatch.setattr(Recorder, "__init__", lambda self, context: found.append(patience_s()))
    called = callbacks("Recorder")
    called.begin(directory)
    called.close(stopped=True)
    assert found == [LONG_PATIENCE_S]


def test_a_callback_that_cannot_be_created_ends_the_role(directory: RunDirectory) -> None:
    with pytest.raises(RunError, match="Unmakable cannot be created: KeyError: 'no API key'"):
        callbacks("Unmakable").begin(directory)


def test_a_slow_callback_does_not_block_the_role(
    directory: RunDirectory, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller, "_MAX_QUEUED", 5)
    monkeypatch.setattr(caller, "STOP_S", 0.02)
    called = callbacks("Stuck")
    called.begin(directory)
    for _ in range(20):
        called.notify(EPISODE)
    called.close(stopped=True)
    assert warnings[0] == "the callbacks are too slow: 5 events are queued, further ones are dropped"
    assert warnings[1] == "the callbacks did not finish within 0.02 s; events still queued are dropped"
    dropped = int(warnings[2].split()[0])
    assert dropped in (14, 15)  # The caller may have taken the first one from the queue by then.


def test_a_callback_gets_all_of_its_time_to_close(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller, "STOP_S", 1_000.0)
    called = callbacks("Stuck")
    called.begin(directory)
    waits_s: list[float] = []
    monkeypatch.setattr(called._thread, "join", waits_s.append)
    called.close(stopped=True)
    assert waits_s[0] > 900.0


def test_a_module_that_exits_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "script_without_main.py").write_text("import sys; sys.exit(0)")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigurationError, match=r"SystemExit: 0 at .*\.py:1; allowed: module:Class"):
        find_callback("script_without_main:Class")


def test_without_callbacks_no_thread_is_started(directory: RunDirectory) -> None:
    before = set(threading.enumerate())
    called = callbacks()
    called.begin(directory)
    called.notify(EPISODE)
    called.close(stopped=False)
    assert not set(threading.enumerate()) - before


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("absent.module:Class", r"ModuleNotFoundError: No module named 'absent'"),
        (f"{HERE}:Absent", r"AttributeError: .* 'Absent'"),
        (f"{HERE}:callbacks", "is no Callback"),
        ("pathlib:Path", "is no Callback"),
    ],
)
def test_other_objects_are_refused(name: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=f'callbacks: "{name}" .*{reason}.*; allowed: module:Class'):
        find_callback(name)


@pytest.mark.parametrize("name", ["module", "module:", ":Class", "a b:Class", "module:Class:x"])
def test_names_of_another_form_are_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"callbacks: .* cannot work .*allowed: module:Class"):
        load_config("sac_pendulum", [f"callbacks=['{name}']"])


def test_a_callback_given_twice_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r'"a:B" is given twice.*each only once$'):
        load_config("sac_pendulum", ["callbacks=['a:B', 'a:B']"])
