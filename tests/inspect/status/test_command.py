"""The command as a process: exit codes, JSON, and repeated polls until Ctrl-C."""

import dataclasses
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from actorlearner.agents.configuration import load_config
from actorlearner.cli.main import main
from actorlearner.errors import RunError
from actorlearner.inspect.status import server_status, show_status
from actorlearner.inspect.status.show_status import print_status
from actorlearner.records.run_directory import RunDirectory


def test_watching_continues_while_the_server_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @dataclasses.dataclass
    class Status:
        number: int

    readings: Iterator[Status | None] = iter([Status(0), Status(1), None, None, Status(4)])

    def read(reader: object) -> Status:
        reading = next(readings)
        if reading is None:
            raise RunError("it did not answer")
        return reading

    waits = iter([False] * 4 + [True])
    monkeypatch.setattr(server_status.ServerStatusReader, "__init__", lambda self, address: None)
    monkeypatch.setattr(server_status.ServerStatusReader, "read", read)
    monkeypatch.setattr(show_status.Stop, "install", lambda self: None)
    monkeypatch.setattr(show_status.Stop, "wait", lambda self, seconds: next(waits))
    print_status(None, "host:1", watch=True, as_json=True)
    shown = capsys.readouterr()
    assert shown.out.splitlines() == ['{"number": 1}', '{"number": 4}']
    assert shown.err.splitlines() == ["it did not answer"]


def test_watching_notices_a_resume_with_more_train_steps(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    readings = iter([False, True])

    def wait(stop: object, seconds: float) -> bool:
        config = load_config("sac_pendulum", ["learn.train_steps=50_000"])
        directory.prepare(config)
        return next(readings)

    monkeypatch.setattr(show_status.Stop, "install", lambda self: None)
    monkeypatch.setattr(show_status.Stop, "wait", wait)
    print_status(str(directory.path), None, watch=True, as_json=True)
    shown = [json.loads(line)["train_steps"] for line in capsys.readouterr().out.splitlines()]
    assert shown == [10_000, 50_000]


def test_the_status_of_a_directory_imports_no_tensorflow(directory: RunDirectory) -> None:
    code = (
        "import sys; from actorlearner.cli.main import main; "
        f"code = main(['status', {str(directory.path)!r}, '--json']); "
        "sys.exit(3 if {'tensorflow', 'reverb', 'numpy', 'grpc'} & set(sys.modules) else code)"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)
    status = json.loads(completed.stdout)
    assert (status["train_step"], len(status["actors"]), len(status["roles"])) == (9_000, 2, 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "RUN_DIR: it is missing; allowed: a run directory, or --replay_address instead"),
        (["."], "RUN_DIR: . is no run directory; allowed: one with config.yaml"),
        (["absent"], "RUN_DIR: absent is no run directory"),
        (
            [".", "--replay_address", "a:1"],
            "--replay_address: 'a:1' cannot be used; allowed: without RUN_DIR",
        ),
        (["--replay_address", "a"], "--replay_address: 'a' cannot be used; allowed: HOST:PORT"),
    ],
)
def test_unusable_arguments_are_refused(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["status", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_watching_goes_on_until_ctrl_c(directory: RunDirectory) -> None:
    command = [sys.executable, "-m", "actorlearner", "status", str(directory.path), "--watch", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        times = [json.loads(watching.stdout.readline())["time"] for _ in range(2)]
        watching.send_signal(signal.SIGINT)
        assert watching.wait(30) == 130
    assert times[1] >= times[0] + 1.9
