"""The status from run directories: of a running run, a finished one, and one of an earlier version."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from actorlearner.agents.configuration import load_config
from actorlearner.errors import ConfigurationError
from actorlearner.inspect.status import run_status
from actorlearner.inspect.status.run_status import (
    FINISHED,
    NOT_RUNNING,
    RUNNING,
    SILENT,
    STARTING,
    WORKING,
    RunStatus,
    open_run,
    read_status,
)
from actorlearner.inspect.status.view import rendered, run_rows
from actorlearner.records.run_directory import RunDirectory
from tests.inspect.status.conftest import NOW, write_heartbeat


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_status.time, "time", lambda: NOW)


def look(directory: RunDirectory) -> RunStatus:
    return read_status(*open_run(directory.path))


def text(status: RunStatus, width: int = 80) -> str:
    return rendered(run_rows(status), width).plain


def test_figures_of_all_roles_are_put_together(directory: RunDirectory) -> None:
    status = look(directory)
    assert status.run_id == directory.run_id
    assert (status.state, status.train_step, status.train_steps) == (RUNNING, 9_000, 10_000)
    assert (status.train_steps_per_s, status.time_left_s) == (100.0, 10.0)
    assert (status.env_steps, status.env_steps_per_s) == (10_000, 101.0)
    assert status.last_evaluation == {"train_step": 8_000, "average_return": -1500.5}
    assert status.best_evaluation == {"train_step": 0, "average_return": -100.25}
    assert status.collect_return == -1234.5
    assert status.faults == 6
    assert status.restarts == 2  # The learner's second generation may be due to a resume.
    assert status.replay["samples_per_insert_wanted"] == 256.0
    [bottleneck] = status.bottlenecks
    assert bottleneck.name == "training"
    assert "the actors wait 62 %" in bottleneck.why


def test_the_state_of_each_role_follows_from_its_heartbeat(directory: RunDirectory) -> None:
    write_heartbeat(directory, "eval-actor", "starting", ready=False)
    roles = {role.name: role for role in look(directory).roles}
    assert {name: role.state for name, role in roles.items()} == {
        "collect-actor-0": WORKING,
        "collect-actor-1": SILENT,
        "eval-actor": STARTING,
        "learner": WORKING,
        "replay-server": WORKING,
    }
    assert roles["learner"].up_s == 3_661
    assert roles["replay-server"].up_s is None
    assert roles["collect-actor-1"].age_s == 100
    assert roles["learner"].memory_bytes == 500 * 2**20


def test_a_run_without_roles_has_finished_or_does_not_run(directory: RunDirectory) -> None:
    for path in directory.heartbeats.iterdir():
        path.unlink()
    assert look(directory).state == NOT_RUNNING
    assert look(directory).env_steps_per_s == 0.0
    newest = directory.metrics("learner").read_text().replace("9000", "10000")
    directory.metrics("learner").write_text(newest)
    assert look(directory).state == NOT_RUNNING  # It was stopped before its last evaluation.
    with directory.metrics("eval").open("a") as file:
        file.write(json.dumps({"time": NOW, "train_step": 10_000, "average_return": -1.0}) + "\n")
    assert look(directory).state == FINISHED


def test_a_learner_in_its_own_directory_finishes_without_evaluations(directory: RunDirectory) -> None:
    for path in (*directory.heartbeats.iterdir(), directory.metrics("eval")):
        path.unlink()
    newest = directory.metrics("learner").read_text().replace("9000", "10000")
    directory.metrics("learner").write_text(newest)
    assert look(directory).state == FINISHED
    directory.log("eval-actor").parent.mkdir()
    directory.log("eval-actor").touch()
    assert look(directory).state == NOT_RUNNING


def test_of_equal_evaluations_the_last_is_the_best(directory: RunDirectory) -> None:
    with directory.metrics("eval").open("a") as file:
        file.write(json.dumps({"time": NOW, "train_step": 8_500, "average_return": -100.25}) + "\n")
    assert look(directory).best_evaluation == {"train_step": 8_500, "average_return": -100.25}


def test_the_best_is_not_of_train_steps_that_were_rolled_back(directory: RunDirectory) -> None:
    with directory.metrics("eval").open("a") as file:
        for step, average in ((8_600, 200.0), (8_500, -90.0)):
            file.write(json.dumps({"time": NOW, "train_step": step, "average_return": average}) + "\n")
    assert look(directory).best_evaluation == {"train_step": 8_500, "average_return": -90.0}


def test_experience_that_is_consumed_once(directory: RunDirectory, tmp_path: Path) -> None:
    on_policy = RunDirectory(tmp_path / "ppo")
    on_policy.prepare(load_config("ppo_cartpole"))
    shutil.copytree(directory.metrics("").parent, on_policy.metrics("").parent)
    status = look(on_policy)
    assert status.replay["capacity"] is None
    shown = " ".join(text(status).split())
    assert "limiter 250.5 samples per insert; blocks inserts" in shown
    assert "transitions (" not in shown
    [bottleneck] = status.bottlenecks
    assert bottleneck.why.endswith("the actors wait 62 % of their time for the learner")


def test_without_evaluation_the_returns_are_the_actors(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.prepare(load_config("sac_pendulum", ["evaluate.interval=null"]))
    assert "returns    evaluation is off\n" in text(look(directory))
    directory.metrics("collect-0").parent.mkdir()
    directory.metrics("collect-0").write_text(json.dumps({"time": NOW, "average_return": 0.00123}) + "\n")
    assert "returns    evaluation is off, collecting 0.00123\n" in text(look(directory))


def test_the_metrics_of_info_have_a_row(directory: RunDirectory) -> None:
    assert "info  " not in text(look(directory))
    record = {"time": NOW, "train_step": 8_500, "average_return": -1.0}
    with directory.metrics("eval").open("a") as file:
        file.write(json.dumps(record | {"average_info": {"energy": 0.0123, "sum:wires": None}}) + "\n")
    assert "info       energy 0.0123, sum:wires -\n" in text(look(directory))


def test_rates_of_long_ago_are_not_those_of_now(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A learner that waits for its batch writes heartbeats but no records."""
    monkeypatch.setattr(run_status.time, "time", lambda: NOW + 40)
    write_heartbeat(directory, "learner", "waiting for replay", time=NOW + 39)
    status = look(directory)
    assert (status.state, status.train_steps_per_s, status.env_steps_per_s) == (RUNNING, 0.0, 0.0)
    assert status.time_left_s is None
    assert "0 train steps/s, 0 env steps/s" in text(status)


def test_rates_last_longer_where_records_are_far_apart(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example when a call of the training graph takes a minute."""
    old, new = (json.loads(line) for line in directory.metrics("learner").read_text().splitlines())
    old["time"] = new["time"] - 60
    directory.metrics("learner").write_text(f"{json.dumps(old)}\n{json.dumps(new)}\n")
    for after, rate in ((110, 100.0), (130, 0.0)):
        monkeypatch.setattr(run_status.time, "time", lambda now=new["time"] + after: now)
        write_heartbeat(directory, "learner", "train step 9,000", time=new["time"] + after)
        assert look(directory).train_steps_per_s == rate


def test_env_steps_of_actors_that_are_elsewhere_are_known_from_the_learner(directory: RunDirectory) -> None:
    learner = json.loads(directory.metrics("learner").read_text().splitlines()[-1]) | {"env_steps": 12_345}
    directory.metrics("learner").write_text(json.dumps(learner) + "\n")
    assert look(directory).env_steps == 12_345
    for index in (0, 1):
        directory.metrics(f"collect-{index}").unlink()
    assert look(directory).env_steps == 12_345


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(directory: RunDirectory, width: int) -> None:
    shown = text(look(directory), width)
    assert all(len(line.rstrip()) <= width for line in shown.splitlines()), shown


def test_the_printed_lines_show_every_figure(directory: RunDirectory) -> None:
    shown = " ".join(text(look(directory)).split())
    for part in (
        "train step 9,000 of 10,000 (90 %), 0:00:10 left",
        "100 train steps/s, 101 env steps/s",
        "50,000 of 100,000 transitions (50 %)",
        "250.5 samples per insert (256.0 wanted); blocks inserts 60 %, sampling 1 % of the time",
        "loss -1.235e+04, staleness 1,234 train steps on average, 8,999 at most",
        "last -1,500.50 (train step 8,000), best -100.25 (train step 0), collecting -1,234.50",
        "6 faults of environments, 2 restarts",
        "learner: train step 9,000, 1 s ago, up 1:01:01, 500 MiB",
        "collect-actor-1: no heartbeat for 100 s after: env step 5,000, 50 env steps/s",
        "bottleneck training: the learner trains 96 % of the time",
        "or lower replay.updates_per_env_step (1)",
    ):
        assert part in shown


def test_records_of_earlier_versions_leave_the_verdict_open(directory: RunDirectory) -> None:
    for path in directory.metrics("eval").parent.iterdir():
        records = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps(_without_fractions(record)) + "\n" for record in records))
    status = look(directory)
    assert (status.bottlenecks, status.waits.actors, status.waits.learner) == ([], None, None)
    assert "not known" in text(status)


def _without_fractions(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if not key.endswith("_fraction")}


def test_a_run_that_has_just_begun(directory: RunDirectory) -> None:
    for path in (*directory.heartbeats.iterdir(), *directory.metrics("eval").parent.iterdir()):
        path.unlink()
    status = look(directory)
    assert (status.state, status.train_step, status.roles) == (NOT_RUNNING, None, [])
    assert "train step - of 10,000 (0 %)" in text(status)


def test_a_directory_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"is no run directory; allowed: one with config\.yaml"):
        open_run(tmp_path)
