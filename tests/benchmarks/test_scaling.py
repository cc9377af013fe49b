"""The arithmetic of the scaling benchmark, and which benchmarks are run when none is named."""

import dataclasses
from typing import Any

import pytest

from benchmarks import __main__ as command
from benchmarks.scaling import (
    Size,
    Traffic,
    env_steps_per_s,
    on_paper,
    policy_lags_s,
    share_of_linear,
    table,
)
from benchmarks.support import report

ONE = Size(
    actors=1,
    env_steps_per_s=50.0,
    cpu_us_per_env_step=600.0,
    server_cores=0.012,
    policy_lag_s=0.11,
    resident_bytes=300 << 20,
    proportional_bytes=60 << 20,
)
MANY = dataclasses.replace(
    ONE, actors=16, env_steps_per_s=760.0, cpu_us_per_env_step=500.0, server_cores=0.042
)


def acting(time: float, env_steps: int) -> dict[str, Any]:
    return {"time": time, "env_steps": env_steps}


def pulled(time: float, train_step: int, age_s: float) -> dict[str, Any]:
    return {"time": time, "policy_train_step": train_step, "policy_age_s": age_s}


def test_a_rate_is_that_between_the_records_of_its_time() -> None:
    records = [
        acting(8.0, 0),
        acting(10.5, 1_000),
        acting(12.5, 1_100),
        acting(14.5, 1_240),
        acting(16.5, 9_000),
    ]
    assert env_steps_per_s(records, 10.0, 15.0) == 60.0


def test_a_rate_of_a_single_record_is_refused() -> None:
    with pytest.raises(ValueError, match="1 records of an actor"):
        env_steps_per_s([acting(8.0, 0), acting(12.0, 50)], 10.0, 15.0)


def test_a_policy_has_arrived_when_the_last_actor_has_it() -> None:
    quick = [pulled(101.1, 7, 1.0), pulled(106.0, 8, 0.9)]
    slow = [pulled(102.0, 7, 1.7), pulled(105.3, 7, 5.0), pulled(107.0, 8, 1.7)]
    published = {6: 95.0, 7: 100.0, 8: 105.0, 9: 110.0}
    assert policy_lags_s([quick, slow], published, began=98.0) == pytest.approx([0.3, 0.3])
    assert policy_lags_s([quick, slow], published, began=101.0) == pytest.approx([0.3])
    assert policy_lags_s([quick[:1], slow], published, began=101.0) == []


def test_the_share_of_linear_is_of_as_many_times_one() -> None:
    assert share_of_linear(MANY, ONE) == 0.95
    two = dataclasses.replace(ONE, actors=2, env_steps_per_s=80.0)
    assert share_of_linear(MANY, two) == 760.0 / 640.0


def test_the_table_has_a_line_for_each_size() -> None:
    assert table([ONE, MANY])[2:] == [
        "| 1 | 50 | 1.000 | 600 | 0.012 | 0.11 | 300 (60) |",
        "| 16 | 760 | 0.950 | 500 | 0.042 | 0.11 | 300 (60) |",
    ]


def test_extrapolated_needs_scale_linearly_except_the_servers_cpu() -> None:
    traffic = Traffic(
        variables_interval_s=0.2, publish_interval_s=5.0, policy_bytes=300_000, transition_bytes=248
    )
    lines = on_paper(1_000, [ONE, MANY], traffic)
    assert lines[0] == "On paper, 1,000 of these actors take 50,000 env steps/s with"
    assert lines[2] == "- 25.0 cores and 293 GiB on their machines, environments left out;"
    assert lines[3].startswith("- 2.0 cores of the replay server, 2.00 thousandths an actor;")
    assert "5,000 looks for a newer policy a second" in lines[3]
    assert lines[4].startswith("- 12.4 MB/s into the replay server, 248 bytes an env step")
    assert lines[5] == "- 60.0 MB/s out of it: 200 pulls a second, with a policy of 0.30 MB every 5 s."


def test_what_a_benchmark_says_beside_its_rows_is_kept_and_shown(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    row = report.Row("scaling", "env steps a second", 800.0, 760.0, 0.95, 0.95, True)
    report.save(tmp_path, "scaling", [row], {"lines": ["On paper", "- much"]}, 1.0)
    report.save(tmp_path, "startup", [row], {"phases": []}, 1.0)
    assert command.main(["--table", "--directory", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[-3:] == ["", "On paper", "- much"]


def test_scaling_runs_by_name_only() -> None:
    assert "scaling" in command.NAMES
    assert "scaling" not in command.BY_DEFAULT
