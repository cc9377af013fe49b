"""The verdict: good only without any fault, and a table that fits a terminal."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.chaos.account import Account
from benchmarks.chaos.downtime import Downtime, downtimes, total_s
from benchmarks.chaos.findings import Findings
from benchmarks.chaos.harm import Done
from benchmarks.chaos.policies import all_steps_back, steps_back
from benchmarks.chaos.schedule import Harm, Kind
from benchmarks.chaos.verdict import reasons, table

DONE = [
    Done(Harm(1.0, "learner", Kind.KILL), began=1_001.0, ended=1_001.1, pid=5),
    Done(Harm(50.0, "learner", Kind.CUT, 4.0), began=1_050.0, ended=1_054.0),
    Done(Harm(60.0, "collect-actor-10", Kind.STOP, 4.0), began=1_060.0, ended=1_064.0, pid=6),
]

GOOD = Findings(
    train_step=1_000_000,
    evaluated=1_000_000,
    train_steps=1_000_000,
    elapsed_s=7_322.0,
    done=DONE,
    not_done=0,
    downtimes={
        "replay-server": [],
        "learner": [Downtime(1_001.0, 1_021.25), Downtime(1_020.0, 1_025.0)],
        "collect-actor-10": [Downtime(1_060.0, 2_294.5)],
    },
    account=Account(10_000_000, 9_000_000, 0, 0, 0, 300_000, 300_000, 400_000, 0),
    policy_records=1_000,
    policies_back=[],
    left=[],
    problems=[],
)


def with_account(**counts: int) -> dict[str, Any]:
    return {"account": dataclasses.replace(GOOD.account, **counts)}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"train_step": 999_999}, "training ended at train step 999,999 of 1,000,000"),
        ({"evaluated": 2_000}, "the last evaluation was of train step 2,000"),
        ({"not_done": 2}, "2 harms were still to come when the run ended"),
        ({"policies_back": ["collect-0: down"]}, "a policy went backwards: collect-0: down"),
        ({"left": [12, 13]}, "2 processes were left: 12, 13"),
        ({"problems": ["learner died by itself: no disk"]}, "learner died by itself: no disk"),
        (with_account(lost=1), "1 transitions were lost for no known reason"),
        (with_account(duplicated=3), "3 transitions are in replay more than once"),
        (with_account(unknown=1), "1 transitions in replay were produced by no actor"),
        (with_account(torn=1), "1 transitions in replay join what does not belong together"),
    ],
)
def test_every_fault_is_a_reason(changed: dict[str, Any], reason: str) -> None:
    findings = dataclasses.replace(GOOD, **changed)
    assert reasons(findings) == [reason]
    assert list(table(findings))[-1] == "verdict        bad"


def test_without_a_fault_it_is_good() -> None:
    assert reasons(GOOD) == []
    lines = list(table(GOOD))
    assert lines[-1] == "verdict        good"
    assert max(map(len, lines)) <= 80
    assert lines[2].split() == ["learner", "1", "0", "1", "12.6", "s", "20.2", "s", "24.0", "s"]
    assert "10,000,000 produced, 9,000,000 in replay, 1,000,000 lost:" in lines[6]


def test_downtimes_last_until_the_role_is_seen_to_work_after_the_harm() -> None:
    working = {"learner": [1_000.0, 1_001.05, 1_021.0, 1_052.0, 1_056.0], "collect-actor-10": [1_062.0]}
    found = downtimes(DONE, working, ended=2_000.0)
    assert {role: [downtime.seconds for downtime in each] for role, each in found.items()} == {
        "learner": [20.0, 6.0],
        "collect-actor-10": [940.0],
    }


def test_overlapping_downtimes_count_once() -> None:
    assert total_s([]) == 0
    assert total_s([Downtime(10, 20), Downtime(0, 5), Downtime(12, 15), Downtime(18, 22)]) == 17


def record(generation: int, train_step: int) -> dict[str, int]:
    return {"policy_generation": generation, "policy_train_step": train_step}


def test_policies_may_only_go_forwards(tmp_path: Path) -> None:
    forwards = [record(-1, -1), record(0, 0), record(0, 20), record(0, 20), record(-1, -1), record(1, 10)]
    assert steps_back(forwards) == []
    assert steps_back([*forwards, record(1, 9), record(2, 0)]) == [
        "train step 10 of learner 1 was followed by train step 9 of learner 1"
    ]
    assert steps_back([record(1, 5), record(-1, -1), record(0, 90)]) == [
        "train step 5 of learner 1 was followed by train step 90 of learner 0"
    ]
    for name, records in (("collect-0", forwards), ("collect-1", [record(0, 5), record(0, 4)])):
        lines = [json.dumps(line) + "\n" for line in records]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    checked, found = all_steps_back(tmp_path)
    assert checked == 8
    assert found == ["collect-1: train step 5 of learner 0 was followed by train step 4 of learner 0"]
