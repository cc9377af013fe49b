"""The command as a process: exit codes, JSON, and looking again until Ctrl-C."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from actorlearner.cli.main import main
from actorlearner.records.run_directory import RunDirectory


def test_a_look_at_a_directory_imports_no_tensorflow(directory: RunDirectory) -> None:
    code = (
        "import sys; from actorlearner.cli.main import main; "
        f"code = main(['status', {str(directory.path)!r}, '--json']); "
        "sys.exit(3 if {'tensorflow', 'reverb', 'numpy', 'grpc'} & set(sys.modules) else code)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)
    status = json.loads(told.stdout)
    assert (status["train_step"], len(status["actors"]), len(status["roles"])) == (9_000, 2, 4)


@pytest.mark.parametrize(
    ("arguments", "said"),
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
def test_what_is_no_run_is_refused(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["status", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_watching_goes_on_until_ctrl_c(directory: RunDirectory) -> None:
    command = [sys.executable, "-m", "actorlearner", "status", str(directory.path), "--watch", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        times = [json.loads(watching.stdout.readline())["time"] for _ in range(2)]
        watching.send_signal(signal.SIGINT)
        assert watching.wait(30) == 130
    assert times[1] >= times[0] + 1.9
