"""Real runs with the user's own code: callbacks get the events of each role, and faults are survived."""

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import REPOSITORY, TINY_RUN, Command, records

pytestmark = pytest.mark.integration

_CODE = """
import dataclasses, json, pathlib
from actorlearner.callbacks import Callback

class Recorder(Callback):
    def record(self, hook, event=None):
        fields = {} if event is None else dataclasses.asdict(event)
        line = json.dumps({"hook": hook, "run_id": self.context.run_id, **fields}, default=str)
        with (pathlib.Path("events") / f"{self.context.role}.jsonl").open("a") as file:
            file.write(line + "\\n")

    def on_episode(self, episode): self.record("on_episode", episode)
    def on_evaluation(self, evaluation): self.record("on_evaluation", evaluation)
    def on_publish(self, publication): self.record("on_publish", publication)
    def on_checkpoint(self, checkpoint): self.record("on_checkpoint", checkpoint)
    def close(self): self.record("close")

class Broken(Callback):
    def on_evaluation(self, evaluation): raise ValueError("not today")
"""
_LOCAL = ("-m", "actorlearner", "local", "--config", str(REPOSITORY / "configs" / "td3_pendulum.yaml"))
_SETTINGS = ("learn.train_steps=400", "evaluate.interval=200", "learn.checkpoint_interval=200")
_LENGTH = 50


def faulty(faults: int) -> tuple[str, ...]:
    """Settings for environments that fail so often in each process, and have episodes of _LENGTH."""
    suite = ("environment.suite=tests.support.faulty:make", "environment.name=''")
    return (*suite, f"environment.kwargs={{faults: {faults}}}", f"environment.max_episode_steps={_LENGTH}")


def events_of(folder: Path, role: str) -> dict[str, list[dict[str, Any]]]:
    """The events that a role's callback received, by hook."""
    by_hook: dict[str, list[dict[str, Any]]] = {}
    for line in (folder / "events" / f"{role}.jsonl").read_text().splitlines():
        event = json.loads(line)
        by_hook.setdefault(event["hook"], []).append(event)
    return by_hook


def test_faults_are_survived_and_counted_and_each_role_calls_its_callbacks(
    start: Callable[..., Command], tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(_CODE)
    (tmp_path / "events").mkdir()
    run = start(
        *(*_LOCAL, "--run_dir", "run", "--set", *TINY_RUN, *_SETTINGS, "collect.actors=1"),
        *("collect.envs_per_actor=2", *faulty(9), "callbacks=['mine:Recorder', 'mine:Broken']"),
    )
    assert run.finish() == 0, run.err
    _check_faults(tmp_path / "run", run.out)
    _check_events(tmp_path)
    assert "eval-actor: callback mine:Broken.on_evaluation raised ValueError: not today" in run.out
    assert run.out.count("not today") == 1
    if "network: private" in run.out:
        assert "callbacks: no network access outside this run; --network host enables it\n" in run.out


def _check_faults(run: Path, out: str) -> None:
    assert records(run / "metrics" / "collect-0.jsonl")[-1]["faults"] == 9
    assert "faults         9 of environments" in out
    log = (run / "logs" / "collect-actor-0.log").read_text()
    assert "environment 0: step raised FloatingPointError: the pendulum came off" in log
    assert all(math.isfinite(record["loss"]) for record in records(run / "metrics" / "learner.jsonl"))
    evaluations = records(run / "metrics" / "eval.jsonl")
    assert [record["lengths"] for record in evaluations] == [[_LENGTH]] * 3
    assert all(math.isfinite(record["average_return"]) for record in evaluations)
    assert (run / "logs" / "eval-actor.log").read_text().count("the environment is replaced") == 9


def _check_events(folder: Path) -> None:
    """Checks that the callbacks of each role got the events that its metrics record."""
    run_id = json.loads((folder / "run" / "manifest.json").read_text())["run_id"]
    metrics = folder / "run" / "metrics"
    learner, actor, evaluator = (
        events_of(folder, role) for role in ("learner", "collect-actor-0", "eval-actor")
    )
    published = [event["train_step"] for event in learner["on_publish"]]
    assert published == sorted(published)
    assert published[-1] == 400
    checkpoints = {event["train_step"]: Path(event["path"]) for event in learner["on_checkpoint"]}
    assert {200, 400} <= set(checkpoints)
    assert all(path.with_suffix(".index").exists() for path in checkpoints.values())

    keys = ("train_step", "env_steps", "returns", "lengths")
    assert [{key: event[key] for key in keys} for event in evaluator["on_evaluation"]] == [
        {key: record[key] for key in keys} for record in records(metrics / "eval.jsonl")
    ]
    episodes = actor["on_episode"]
    assert len(episodes) == records(metrics / "collect-0.jsonl")[-1]["episodes"]
    assert {event["length"] for event in episodes} == {_LENGTH}
    for events in (learner, actor, evaluator):
        assert [event["run_id"] for event in events["close"]] == [run_id]


@pytest.mark.long
def test_an_environment_that_always_fails_ends_the_run_and_is_named(start: Callable[..., Command]) -> None:
    settings = (*TINY_RUN, *_SETTINGS, *faulty(1_000_000), "environment.max_faults=4")
    command = start(*_LOCAL, "--run_dir", "run", "--set", *settings)
    assert command.finish() == 1
    assert "environment 0 failed 5 times in a row (environment.max_faults: 4), most recently: " in command.err
    assert "Traceback" not in command.err


@pytest.mark.long
def test_a_run_may_be_resumed_with_other_callbacks(start: Callable[..., Command], tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(_CODE)
    (tmp_path / "events").mkdir()
    settings = (*TINY_RUN, *_SETTINGS, "collect.actors=1")
    first = start(*_LOCAL, "--run_dir", "run", "--set", *settings)
    assert first.finish() == 0, first.err
    assert not any((tmp_path / "events").iterdir())
    longer = start(
        *(*_LOCAL, "--run_dir", "run", "--set", *settings),
        *("learn.train_steps=600", "callbacks=['mine:Recorder']"),
    )
    assert longer.finish() == 0, longer.err
    assert [event["train_step"] for event in events_of(tmp_path, "eval-actor")["on_evaluation"]] == [600]


def test_a_missing_callback_is_refused_before_any_role_starts(
    start: Callable[..., Command], tmp_path: Path
) -> None:
    refused = start(*_LOCAL, "--run_dir", "run", "--set", "callbacks=['mine:Absent']")
    assert refused.finish() == 2
    (line,) = refused.err.splitlines()
    assert line.startswith('actorlearner: error: callbacks: "mine:Absent" cannot be loaded')
    assert "--set" in line
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_weights_and_biases_records_a_run(start: Callable[..., Command], tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="the extra wandb is not installed")
    run = start(
        *(*_LOCAL, "--run_dir", "run", "--set", *TINY_RUN, *_SETTINGS, "collect.actors=1"),
        "callbacks=['actorlearner.callbacks.weights_and_biases:WeightsAndBiases']",
        WANDB_MODE="offline",
        HOME=str(tmp_path),
    )
    assert run.finish() == 0, run.err
    run_id = json.loads((tmp_path / "run" / "manifest.json").read_text())["run_id"]
    recorded = sorted(path.name for path in (tmp_path / "run" / "wandb").glob("offline-run-*/run-*.wandb"))
    assert recorded == [f"run-{run_id}-{role}.wandb" for role in ("collect-actor-0", "eval-actor", "learner")]
    (evaluations,) = (tmp_path / "run" / "wandb").glob(f"offline-run-*/run-{run_id}-eval-actor.wandb")
    assert history(evaluations, "eval/average_return") == [
        record["average_return"] for record in records(tmp_path / "run" / "metrics" / "eval.jsonl")
    ]
    shutil.rmtree(tmp_path / "run" / "wandb")


def history(path: Path, key: str) -> list[float]:
    """The values of a curve in a file of wandb's."""
    from wandb.proto import wandb_internal_pb2
    from wandb.sdk.internal.datastore import DataStore

    store = DataStore()
    store.open_for_scan(str(path))
    values = []
    while (data := store.scan_data()) is not None:
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        for item in record.history.item:
            if (item.key or "/".join(item.nested_key)) == key:
                values.append(float(json.loads(item.value_json)))
    return values
