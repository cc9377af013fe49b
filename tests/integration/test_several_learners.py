"""Two learners that train as one, as on two hosts: each a process, with nothing shared but addresses."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from actorlearner.process.health import check
from actorlearner.records.run_directory import RunDirectory
from tests.support.ports import unused_port
from tests.support.processes import (
    PATIENCE_S,
    REPOSITORY,
    Command,
    marked_processes,
    records,
    saved_train_step,
    wait_for,
)

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1_500)]

_TRAIN_STEPS = 1_200
_SETTINGS = (
    *("learn.strategy=multi_worker_mirrored", "agent.layers=[16]", "learn.batch_size=32"),
    *(f"learn.train_steps={_TRAIN_STEPS}", "learn.checkpoint_interval=100", "replay.updates_per_env_step=1"),
    *(
        "replay.min_size=64",
        "collect.initial_random_steps=64",
        "evaluate.episodes=1",
        "evaluate.interval=600",
    ),
)

Start = Callable[..., Command]


class Cluster:
    """The commands of one run, each with a run directory of its own."""

    def __init__(self, start: Start, folder: Path) -> None:
        self._start = start
        self._folder = folder
        self._port = unused_port()
        self._learners = [f"localhost:{unused_port()}" for _ in range(2)]
        self.server = self._role("replay-server", "server", "--port", str(self._port))

    def _role(self, role: str, directory: str, *options: str, **variables: str) -> Command:
        config = str(REPOSITORY / "configs" / "dqn_cartpole.yaml")
        command = ("-m", "actorlearner", role, "--config", config, "--run_dir", directory)
        return self._start(*command, *options, "--set", *_SETTINGS, **variables)

    def client(self, role: str, *options: str) -> Command:
        return self._role(role, role, "--replay_address", f"localhost:{self._port}", *options)

    def actor(self) -> Command:
        return self.client("collect-actor", "--actor_index", "0")

    def learners(self) -> list[Command]:
        """Both, the chief first."""
        started = []
        for index in range(2):
            task = {"type": "worker", "index": index}
            tf_config = json.dumps({"cluster": {"worker": self._learners}, "task": task})
            address = ("--replay_address", f"localhost:{self._port}")
            started.append(
                self._role(
                    "learner", f"learner-{index}", *address, TF_CONFIG=tf_config, CUDA_VISIBLE_DEVICES="-1"
                )
            )
        return started

    def directory(self, index: int) -> Path:
        return self._folder / f"learner-{index}"

    @property
    def saved(self) -> int:
        return saved_train_step(self.directory(0))

    def wait_for_train_steps(self, learners: list[Command]) -> None:
        """Waits until training continues from the last checkpoint."""
        wanted = self.saved + 100

        def trained() -> bool:
            for learner in learners:
                assert learner.process.poll() is None, learner.process.communicate()
            return self.saved >= wanted

        wait_for(trained, f"train step {wanted}", 2 * PATIENCE_S)

    def end(self) -> None:
        self.server.interrupt(signal.SIGTERM)
        assert self.server.finish() == 143, self.server.err


def test_both_learners_end_if_one_dies_and_resume_from_the_chiefs_checkpoint(
    start: Start, mark: str, tmp_path: Path
) -> None:
    cluster = Cluster(start, tmp_path)
    actor, evaluator = cluster.actor(), cluster.client("eval-actor")

    chief, other = cluster.learners()
    cluster.wait_for_train_steps([chief, other])
    for index, name in enumerate(("learner", "learner-1")):
        (health,) = check(["learner"], RunDirectory(cluster.directory(index)))
        assert (health.name, health.healthy) == (name, True), health
    other.process.kill()
    assert chief.finish() == 1, chief.err
    last = chief.err.splitlines()[-1]
    assert last.startswith("actorlearner: error: learner: learner-1 at localhost:"), chief.err
    assert last.endswith(
        "was lost (its connection was closed): restart all learners of the group; they resume from the "
        "chief's last checkpoint"
    )
    other.finish()
    saved = cluster.saved
    assert 100 <= saved < _TRAIN_STEPS

    chief, other = cluster.learners()
    assert (chief.finish(2 * PATIENCE_S), other.finish()) == (0, 0), chief.err + other.err
    assert f"restored train step {saved}" in chief.err
    assert evaluator.finish() == 0, evaluator.err
    assert actor.finish() == 0, actor.err
    cluster.end()
    assert marked_processes(mark) == []
    metrics = cluster.directory(0) / "metrics" / "learner.jsonl"
    assert records(metrics)[-1]["train_step"] == cluster.saved == _TRAIN_STEPS
    evaluations = records(tmp_path / "eval-actor" / "metrics" / "eval.jsonl")
    assert [record["train_step"] for record in evaluations] == [0, 600, _TRAIN_STEPS]
    left = {path.name for path in cluster.directory(1).rglob("*")}
    assert left == {"config.yaml", "manifest.json", "events.jsonl", "lock", "logs", "learner-1.log", "health"}


@pytest.mark.long
def test_stopping_one_learner_stops_both_and_they_resume(start: Start, tmp_path: Path) -> None:
    cluster = Cluster(start, tmp_path)
    actor = cluster.actor()
    chief, other = cluster.learners()
    cluster.wait_for_train_steps([chief, other])
    other.interrupt(signal.SIGTERM)
    assert (chief.finish(), other.finish()) == (143, 143), chief.err + other.err
    assert "learner: stopping, because learner-1 was stopped" in chief.err
    stopped_at = cluster.saved
    assert f"checkpoint of train step {stopped_at} written" in chief.err
    assert stopped_at < _TRAIN_STEPS
    assert records(cluster.directory(0) / "metrics" / "learner.jsonl")[-1]["train_step"] == stopped_at

    learners = cluster.learners()
    cluster.wait_for_train_steps(learners)
    for command in (actor, *learners):
        command.interrupt(signal.SIGTERM)
        assert command.finish() == 143, command.err
    assert f"restored train step {stopped_at}" in learners[0].err
    cluster.end()


@pytest.mark.long
def test_learners_that_starve_are_stopped_and_saved(start: Start, tmp_path: Path) -> None:
    cluster = Cluster(start, tmp_path)
    actor, learners = cluster.actor(), cluster.learners()
    cluster.wait_for_train_steps(learners)
    actor.interrupt(signal.SIGTERM)
    assert actor.finish() == 143, actor.err

    def starve() -> bool:
        found = [check(["learner"], RunDirectory(cluster.directory(index)))[0] for index in range(2)]
        return all("waiting for transitions to train on" in health.why for health in found)

    wait_for(starve, "both learners to wait for transitions")
    learners[1].interrupt(signal.SIGTERM)
    for learner in learners:
        assert learner.finish() == 143, learner.err
        assert (
            "stopping while training waits for transitions to train on, here or at another learner"
            in learner.err
        )
    assert f"checkpoint of train step {cluster.saved} written" in learners[0].err
    cluster.end()
