"""Metrics files and rates."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actorlearner.records import metrics
from actorlearner.records.metrics import (
    METRICS_INTERVAL_S,
    MetricsWriter,
    Rate,
    newest_records,
    read_records,
    time_left_s,
)
from tests.support.processes import REPOSITORY


def records(path: Path) -> list[dict[str, Any]]:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    return [json.loads(line, parse_constant=refuse) for line in path.read_text().splitlines()]


def without_time(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != "time"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics" / "learner.jsonl"


def test_a_record_is_a_line_with_the_time_first(path: Path) -> None:
    writer = MetricsWriter(path)
    before = time.time()
    writer.write({"train_step": 3, "loss": 0.5, "returns": [1.0, 2.0], "staleness_max": None})
    after = time.time()
    (record,) = records(path)
    assert list(record) == ["time", "train_step", "loss", "returns", "staleness_max"]
    assert before - 0.001 <= record["time"] <= after + 0.001
    assert without_time(record) == {
        "train_step": 3,
        "loss": 0.5,
        "returns": [1.0, 2.0],
        "staleness_max": None,
    }


def test_a_record_is_on_disk_when_it_was_written(path: Path) -> None:
    writer = MetricsWriter(path)
    for count in range(1, 4):
        writer.write({"env_steps": count})
        assert [record["env_steps"] for record in records(path)] == list(range(1, count + 1))
        assert path.read_bytes().endswith(b"\n")


def test_nothing_is_lost_when_the_process_ends_at_once(path: Path) -> None:
    script = (
        "import os, sys, pathlib; from actorlearner.records.metrics import MetricsWriter; "
        "MetricsWriter(pathlib.Path(sys.argv[1])).write({'env_steps': 1}); os._exit(9)"
    )
    command = [sys.executable, "-c", script, os.fspath(path)]
    assert subprocess.run(command, cwd=REPOSITORY, check=False).returncode == 9
    assert [without_time(record) for record in records(path)] == [{"env_steps": 1}]


def test_a_resumed_run_appends(path: Path) -> None:
    for count in range(3):
        writer = MetricsWriter(path)
        writer.write({"env_steps": count})
    assert [record["env_steps"] for record in records(path)] == [0, 1, 2]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf"), np.float64("nan")])
def test_numbers_that_json_does_not_have_are_null(path: Path, number: float) -> None:
    writer = MetricsWriter(path)
    writer.write({"loss": number, "train_step": 1})
    assert [without_time(record) for record in records(path)] == [{"loss": None, "train_step": 1}]


def test_numbers_inside_a_list_that_json_does_not_have_are_null(path: Path) -> None:
    writer = MetricsWriter(path)
    writer.write({"returns": [1.0, float("nan"), float("-inf")]})
    assert [without_time(record) for record in records(path)] == [{"returns": [1.0, None, None]}]


class Clock:
    def __init__(self) -> None:
        self.now = 500.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(metrics, "time", clock)
    return clock


def test_a_rate_is_measured_since_the_last_call(clock: Clock) -> None:
    rate = Rate(0)
    clock.now += 2.0
    assert rate.update(100) == 50.0
    clock.now += 4.0
    assert rate.update(100) == 0.0
    clock.now += 0.5
    assert rate.update(130) == 60.0


def test_a_rate_counts_from_where_it_began(clock: Clock) -> None:
    rate = Rate(1_000)
    clock.now += 2.0
    assert rate.update(1_100) == 50.0


def test_a_rate_without_time_is_a_number(clock: Clock) -> None:
    assert np.isfinite(Rate(0).update(10))


def test_a_record_is_due_after_the_interval(clock: Clock) -> None:
    rate = Rate(0)
    assert not rate.due
    clock.now += METRICS_INTERVAL_S - 0.01
    assert not rate.due
    clock.now += 0.02
    assert rate.due
    assert rate.due
    rate.update(1)
    assert not rate.due


@pytest.mark.parametrize("spoilt", [b"\0\0\0", b'{"a": 1', b'{"a": 1{"a": 2}', b"[1]", b"\xff"])
def test_a_damaged_line_does_not_affect_other_records(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, spoilt: bytes
) -> None:
    path = tmp_path / "learner.jsonl"
    path.write_bytes(b'{"a": 0}\n' + spoilt + b'\n{"a": 3}\n' + spoilt + b"\n")
    for _ in range(2):
        assert read_records(path) == newest_records(path) == [{"a": 0}, {"a": 3}]
    assert caplog.messages == [f"{path} is damaged: lines that cannot be read are skipped"]


def test_the_newest_record_may_be_longer_than_what_is_read_first(path: Path) -> None:
    writer = MetricsWriter(path)
    writer.write({"train_step": 0, "returns": [-123.45678901234567] * 10_000})
    writer.write({"train_step": 1_000, "returns": [-123.45678901234567] * 10_000})
    assert newest_records(path)[-1]["train_step"] == 1_000


def learner_records(*rates: float) -> list[dict[str, Any]]:
    """Learner records two seconds apart; the newest one is of now, at train step 400."""
    ages = reversed([METRICS_INTERVAL_S * index for index in range(len(rates))])
    now = time.time()
    return [
        {"time": now - age, "train_step": 400, "train_steps_per_s": rate}
        for age, rate in zip(ages, rates, strict=True)
    ]


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ([], None),
        ([50.0], 12.0),
        ([0.5, 50.0, 50.0, 50.0], 12.0),
        ([50.0, 50.0, 50.0, 5.0], 12.0),
        ([5.0] * 60 + [50.0] * 30, 12.0),
    ],
    ids=["no record", "one record", "a slow first call", "a slow last record", "slow minutes ago"],
)
def test_a_forecast_goes_by_the_rate_of_the_last_minute(rates: list[float], expected: float | None) -> None:
    assert time_left_s(learner_records(*rates), train_steps=1_000) == expected


def test_a_learner_that_has_gone_silent_has_no_forecast() -> None:
    old = [record | {"time": record["time"] - 40} for record in learner_records(50.0, 50.0)]
    assert time_left_s(old, train_steps=1_000) is None
