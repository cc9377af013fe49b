"""Chaos, for real but short: every role is killed once, and nothing is lost without a reason."""

import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY, TINY_RUN, Command, marked_processes, records, wait_for

pytestmark = [pytest.mark.integration, pytest.mark.long]

_PENDULUM = str(REPOSITORY / "configs" / "td3_pendulum.yaml")
_ROLES = ("replay-server", "learner", "collect-actor-0", "eval-actor")


def _chaos(start: Callable[..., Command], fresh: bool = False) -> Command:
    return start(
        *("-m", "benchmarks.chaos", "--config", _PENDULUM, "--run_dir", "run"),
        *("--duration", "60", "--seed", "1", "--set", *TINY_RUN, "collect.actors=1"),
        *("learn.train_steps=2000", "evaluate.interval=1000"),
        fresh=fresh,
        TF_CPP_MIN_LOG_LEVEL="0",  # TensorFlow may print, as it does on a user's terminal.
    )


def test_a_run_survives_a_kill_of_every_role(
    start: Callable[..., Command], mark: str, tmp_path: Path
) -> None:
    command = _chaos(start, fresh=True)
    assert command.finish(timeout_s=600) == 0, command.out + command.err
    assert command.err == ""
    assert marked_processes(mark) == []
    for role in _ROLES:
        assert re.search(rf"^ *[\d.]+ s  kill {role}$", command.out, re.MULTILINE)
    verdict = command.out.splitlines()[-17:]
    assert max(map(len, verdict)) <= 80
    rows = {line.split()[0]: line.split() for line in verdict if line}
    for role in _ROLES:
        kills, stops, cuts, mean, _, longest, _, _, _ = rows[role][1:]
        assert (kills, stops, cuts) == ("1", "0", "0")
        assert 0 < float(mean) == float(longest)
    assert " ".join(rows["train"][:5]) == "train steps 2,000 of 2,000"
    (line,) = [line for line in verdict if line.startswith("transitions")]
    produced, stored, lost = (int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", line))
    assert produced == stored + lost
    assert stored >= 2000  # The learner has trained on as many env steps.
    assert "             0 for no known reason" in verdict
    assert "             0 duplicated, 0 unknown, 0 torn" in verdict
    assert rows["policies"][1] == "never"
    assert rows["verdict"] == ["verdict", "good"]
    # A new learner may repeat a train step that a killed one had evaluated.
    steps = [record["train_step"] for record in records(tmp_path / "run" / "metrics" / "eval.jsonl")]
    assert (sorted(set(steps)), steps[-1]) == ([0, 1000, 2000], 2000)


def test_a_signal_ends_it_with_no_process_left(
    start: Callable[..., Command], mark: str, tmp_path: Path
) -> None:
    command = _chaos(start)
    wait_for(lambda: (tmp_path / "run" / "metrics" / "collect-0.jsonl").exists(), "the first env step")
    command.interrupt(signal.SIGINT)
    assert command.finish() == 130, command.err
    assert "verdict" not in command.out
    assert marked_processes(mark) == []
