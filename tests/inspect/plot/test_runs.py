"""Reading run directories: intact and damaged ones, and runs that paused or rolled back."""

import json
from pathlib import Path

import numpy as np
import pytest

from actorlearner.inspect.plot.runs import RecordedRun, read_runs
from tests.support.recorded_run import evaluation, recorded_run, report, trained_run


def read_one(tmp_path: Path, **records: object) -> RecordedRun:
    (run,) = read_runs([recorded_run(tmp_path / "run", **records)], pytest.fail)  # type: ignore[arg-type]
    return run


def test_a_run_is_read(tmp_path: Path) -> None:
    (run,) = read_runs([trained_run(tmp_path / "run", "seed=3")], pytest.fail)
    assert run.name == "run"
    assert run.config.seed == 3
    assert list(run.evaluations.train_steps) == [0, 500, 1_000]
    assert list(run.evaluations.seconds) == [0, 50, 100]
    assert [list(returns) for returns in run.evaluations.returns] == [[0, 0], [500, 1_000], [1_000, 2_000]]
    assert list(run.training.seconds[:2]) == [2, 4]
    assert list(run.training.env_steps[:2]) == [20, 40]
    assert set(run.training.staleness_max) == {10}


def test_further_replay_servers_are_of_the_run_that_knows_them(tmp_path: Path) -> None:
    learner, config = trained_run(tmp_path / "learner")
    assert learner.run_id
    server, _ = recorded_run(tmp_path / "replay-1")
    assert server.run_id != learner.run_id
    assert server.run_id
    learner.remember_server(1, server.run_id)
    (run,) = read_runs([(server, config), (learner, config)], pytest.fail)
    assert run.name == "replay-1"
    assert len(run.evaluations.returns) == 3


def test_pauses_are_left_out_of_the_time(tmp_path: Path) -> None:
    """It ran for 10 s, was stopped, and ran again from 1,000 s on."""
    run = read_one(
        tmp_path,
        evaluations=[evaluation(10, 0, [1]), evaluation(1_010, 100, [1])],
        replay=[{"time": t} for t in (0, 5, 10, 1_000, 1_005, 1_010)],
    )
    assert list(run.evaluations.seconds) == [10, 20]


def test_without_a_replay_server_rare_records_are_no_pause(tmp_path: Path) -> None:
    """The directory of an eval actor that was started by hand has nothing between two evaluations."""
    run = read_one(tmp_path, evaluations=[evaluation(10, 0, [1]), evaluation(1_010, 100, [1])])
    assert list(run.evaluations.seconds) == [10, 1_010]


def test_evaluations_of_train_steps_rolled_back_are_not_drawn(tmp_path: Path) -> None:
    steps = [0, 100, 200, 300, 200, 300]
    run = read_one(tmp_path, evaluations=[evaluation(t, step, [t]) for t, step in enumerate(steps)])
    assert list(run.evaluations.train_steps) == [0, 100, 200, 300]
    assert [returns[0] for returns in run.evaluations.returns] == [0, 1, 4, 5]


def test_unknown_values_are_nan(tmp_path: Path) -> None:
    run = read_one(tmp_path, evaluations=[evaluation(0, 0, [1])], training=[report(1, 10, staleness=None)])
    assert np.isnan(run.training.staleness_mean).all()


def test_half_a_line_at_the_end_is_not_read(tmp_path: Path) -> None:
    directory, config = trained_run(tmp_path / "run")
    with directory.metrics("eval").open("a") as file:
        file.write('{"time": 1, "train_st')
    (run,) = read_runs([(directory, config)], pytest.fail)
    assert len(run.evaluations.returns) == 3


def test_a_file_that_cannot_be_read_is_named_and_left_out(tmp_path: Path) -> None:
    directory, config = trained_run(tmp_path / "run")
    directory.metrics("learner").unlink()
    directory.metrics("learner").mkdir()
    lines: list[str] = []
    (run,) = read_runs([(directory, config)], lines.append)
    assert len(lines) == 1
    assert lines[0].startswith(f"{directory.metrics('learner')}: skipped, cannot be read: IsADirectoryError")
    assert len(run.training.seconds) == 0
    assert len(run.evaluations.returns) == 3


def test_a_spoilt_manifest_is_named(tmp_path: Path) -> None:
    directory, config = trained_run(tmp_path / "run")
    directory.manifest.write_text("[]")
    lines: list[str] = []
    (run,) = read_runs([(directory, config)], lines.append)
    assert lines == [
        f"{directory.manifest}: skipped, cannot be read: TypeError: 'list' object is not a mapping"
    ]
    assert list(run.evaluations.seconds) == [0, 50, 100]


def test_a_run_without_an_evaluation_is_named(tmp_path: Path) -> None:
    lines: list[str] = []
    read_runs([recorded_run(tmp_path / "young", training=[report(1, 10)])], lines.append)
    assert lines == ["young: no evaluation yet, so it has no returns to draw"]


def test_directories_of_roles_that_were_started_by_hand_are_one_run(tmp_path: Path) -> None:
    learner = recorded_run(tmp_path / "learner", training=[report(2, 10)])
    evaluations = recorded_run(tmp_path / "eval", evaluations=[evaluation(3, 0, [1])])
    manifest = json.loads(evaluations[0].manifest.read_text()) | {"run_id": learner[0].run_id}
    evaluations[0].manifest.write_text(json.dumps(manifest))
    (run,) = read_runs([learner, evaluations], pytest.fail)
    assert list(run.training.seconds) == [2]
    assert list(run.evaluations.seconds) == [3]


def test_a_run_begins_when_it_was_made(tmp_path: Path) -> None:
    run = read_one(tmp_path, evaluations=[evaluation(30, 0, [1])], replay=[{"time": 20}])
    assert list(run.evaluations.seconds) == [30]
