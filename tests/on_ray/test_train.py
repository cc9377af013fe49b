"""The command for Ray without a cluster: one that cannot be reached, and one that is busy.

tests/integration/test_ray.py has one that can be reached.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from ray.exceptions import ActorUnavailableError

from actorlearner.agents.configuration import load_config
from actorlearner.errors import ConfigurationError
from actorlearner.on_ray import train
from actorlearner.on_ray.run_actor import Outcome, RunSettings
from actorlearner.process.stop import Stop
from tests.support.processes import REPOSITORY

_DEADLINE_S = 90.0


@pytest.mark.parametrize("address", ["foo", "127.0.0.1:{port}"])
def test_an_address_without_a_cluster_is_refused(address: str, tmp_path: Path, free_port: int) -> None:
    arguments = (
        "--config",
        "sac_pendulum",
        "--collect_actors",
        "1",
        "--address",
        address.format(port=free_port),
    )
    process = subprocess.run(
        [sys.executable, "-m", "actorlearner", "ray", *arguments],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        stderr=subprocess.PIPE,
        text=True,
        timeout=_DEADLINE_S,
    )
    assert process.returncode == 2
    assert "; allowed: auto or the HOST:PORT of a Ray cluster with this node; " in process.stderr
    assert not list(tmp_path.iterdir())


_ACTOR = SimpleNamespace(poll=SimpleNamespace(remote=lambda offset: "an answer"))


@pytest.fixture(name="waits")
def _waits(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes Ray start the run's actor after some waits, each of which calls a function."""

    def make(count: int, during: Callable[[], None] = lambda: None) -> None:
        left = iter(range(count))

        def wait(answers: list[str], timeout: float) -> tuple[list[str], list[str]]:
            during()
            return ([], answers) if next(left, None) is not None else (answers, [])

        monkeypatch.setattr(train, "ray", SimpleNamespace(wait=wait))

    return make


def test_a_run_that_starts_soon_prints_nothing(
    waits: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    waits(3)
    assert train._answers(_ACTOR, Stop())
    assert capsys.readouterr().out == ""


def test_a_long_wait_for_the_node_is_told_once(
    waits: Callable[..., None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(train, "_REPORT_AFTER_S", 0.0)
    waits(3)
    assert train._answers(_ACTOR, Stop())
    line = "waiting until Ray can start the run on this node, with all of its GPUs\n"
    assert capsys.readouterr().out == line


def test_a_stop_ends_the_wait_for_the_node(waits: Callable[..., None]) -> None:
    stop = Stop()
    waits(1_000, stop.request)
    assert not train._answers(_ACTOR, stop)


def test_a_run_that_has_started_is_followed_to_its_end(waits: Callable[..., None]) -> None:
    """This holds after a stop, too: the command forwards the stop to the run."""
    stop = Stop()
    stop.request()
    waits(0)
    assert train._answers(_ACTOR, stop)


def test_a_stop_reaches_an_actor_that_ray_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stop, received, lost = Stop(), list[int](), iter([True])
    stop.request(signal.SIGTERM)

    def send(number: int) -> None:
        if next(lost, False):
            raise ActorUnavailableError("The actor is restarting.", None)
        received.append(number)

    polls = iter([None, Outcome(143)])
    actor = SimpleNamespace(
        stop=SimpleNamespace(remote=lambda number: lambda: send(number)),
        poll=SimpleNamespace(remote=lambda offset: lambda: (b"", next(polls))),
    )
    monkeypatch.setattr(train, "ray", SimpleNamespace(get=lambda answer: answer()))
    monkeypatch.setattr(train, "_RETRY_S", 0.0)
    assert train._follow(actor, 0, stop).exit_code == 143
    assert received == [signal.SIGTERM]


@pytest.mark.parametrize("exists", [False, True])
def test_a_refused_start_leaves_no_run_directory(
    exists: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A corrected start can use the same path. A directory that existed before stays."""
    run = tmp_path / "runs" / "one"
    if exists:
        run.mkdir(parents=True)

    def start(settings: RunSettings) -> SimpleNamespace:
        for name in ("config.yaml", "lock", "metrics/replay.jsonl", "logs/ray.log"):
            path = Path(settings.run_dir, name)
            path.parent.mkdir(exist_ok=True)
            path.touch()
        return SimpleNamespace(poll=SimpleNamespace(remote=lambda offset: (b"", Outcome(2, ("wrong",)))))

    ray = SimpleNamespace(
        get_actor=lambda name: None,
        get_runtime_context=lambda: SimpleNamespace(get_node_id=lambda: "aa"),
        nodes=lambda: [{"NodeID": "aa", "Resources": {}}],
        remote=lambda _: SimpleNamespace(options=lambda **_: SimpleNamespace(remote=start)),
        wait=lambda answers, timeout: (answers, []),
        get=lambda answer: answer,
        kill=lambda actor: None,
    )
    monkeypatch.setattr(train, "ray", ray)
    monkeypatch.setattr(train, "_connection", lambda address, actors: contextlib.nullcontext())
    monkeypatch.setattr(train, "make_output_robust", lambda: None)
    monkeypatch.setattr(Stop, "install", lambda stop: None)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    with pytest.raises(ConfigurationError, match="wrong"):
        train.run_on_ray(load_config("sac_pendulum"), str(run), "experiment", "auto")
    assert run.exists() == exists
    assert (tmp_path / "runs").exists() == exists
