"""The doctor's command as a user runs it."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from actorlearner.inspect.doctor.run_checks import CHECKS
from tests.support.processes import REPOSITORY, Command

pytestmark = pytest.mark.integration

Start = Callable[..., Command]

_PENDULUM = str(REPOSITORY / "configs" / "td3_pendulum.yaml")


def lines_of(command: Command) -> list[str]:
    """The printed output, one line for each check, joined with its continuation lines."""
    assert max(map(len, command.out.splitlines())) <= 80
    return command.out.replace("\n" + " " * 17, " ").splitlines()


def test_a_machine_that_is_ready(start: Start, tmp_path: Path) -> None:
    command = start("-m", "actorlearner", "doctor")
    assert command.finish() == 0, command.out
    assert command.err == ""
    lines = lines_of(command)
    assert [line.split()[1] for line in lines] == [check.name for check in CHECKS]
    # In a checkout that is not installed, the pins are unknown; a driver may be missing for a GPU; and other
    # processes may use the memory.
    warned = {line.split()[1] for line in lines if not line.startswith("ok   ")}
    assert warned <= {"versions", "gpus", "memory"}
    left = [path for path in tmp_path.rglob("*") if path != tmp_path / "temporary"]
    assert left == [], "nothing is written"


def test_a_failed_check_is_reported_and_the_others_are_still_made(start: Start) -> None:
    command = start(
        *("-m", "actorlearner", "doctor", "--config", _PENDULUM, "--run_dir", "/proc/nowhere"),
        *("--set", "replay.capacity=50000000000"),
    )
    assert command.finish() == 1
    assert command.err == ""
    failed = [line for line in lines_of(command) if line.startswith("FAIL ")]
    assert [line.split()[1] for line in failed] == ["memory", "disk"]
    assert "replay.capacity: 50000000000 transitions may need " in failed[0]


def test_a_bad_configuration_is_refused_as_everywhere(start: Start) -> None:
    command = start("-m", "actorlearner", "doctor", "--set", "learn.batch_size=-1")
    assert command.finish() == 2
    assert command.out == ""
    assert command.err.startswith("actorlearner: error: learn.batch_size: -1 is out of range (--set)")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_and_nothing_is_left(
    start: Start, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    command = start("-m", "actorlearner", "doctor")
    temporary = tmp_path / "temporary"
    assert command.process.stdout is not None
    assert command.process.stdout.readline().startswith("ok   platform")
    command.interrupt(number)
    assert command.finish() == code
    assert command.err == ""
    assert not any(temporary.iterdir())
