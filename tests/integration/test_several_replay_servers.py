"""Two replay servers: one may die and come back while training goes on with the other."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from actorlearner.records.seal import sealed
from tests.support.ports import unused_port
from tests.support.processes import REPOSITORY, TINY_RUN, Command, marked_processes, records, wait_for

pytestmark = pytest.mark.integration

_CONFIG = ("--config", str(REPOSITORY / "configs" / "td3_pendulum.yaml"))
_TRAIN_STEPS = 2_000
_SETTINGS = (
    *TINY_RUN,
    # Env steps that are slow: training must not end before the second server is back.
    *("environment.suite=tests.support.burdens:make", "environment.name=''"),
    *("environment.kwargs={wait_s: 0.01}", "environment.max_episode_steps=50"),
    f"learn.train_steps={_TRAIN_STEPS}",
    f"evaluate.interval={_TRAIN_STEPS}",
    "replay.checkpoint_interval_s=1",
)


@pytest.fixture(name="ports")
def _ports() -> tuple[int, int]:
    return unused_port(), unused_port()


def _serve(start: Callable[..., Command], port: int, directory: str, *settings: str) -> Command:
    return start(
        *("-m", "actorlearner", "replay-server", *_CONFIG, "--port", str(port), "--run_dir", directory),
        *("--set", *_SETTINGS, *settings),
    )


def _join(start: Callable[..., Command], role: str, addresses: str, directory: str, *more: str) -> Command:
    flags = ("--replay_address", addresses, "--run_dir", directory, *more, "--set", *_SETTINGS)
    return start("-m", "actorlearner", role, *_CONFIG, *flags)


def _last(directory: Path, name: str, key: str) -> int:
    """The newest figure of a metrics file; 0 while there is none."""
    found = records(directory / "metrics" / f"{name}.jsonl")
    return int(found[-1][key]) if found else 0


def test_training_goes_on_without_the_second_server_and_with_it_once_it_is_back(
    start: Callable[..., Command], mark: str, tmp_path: Path, ports: tuple[int, int]
) -> None:
    addresses = ",".join(f"localhost:{port}" for port in ports)
    first, second = (_serve(start, port, f"on_{port}") for port in ports)
    on_first, on_second = (tmp_path / f"on_{port}" for port in ports)
    actors = [
        _join(start, "collect-actor", addresses, f"on_actor_{i}", "--actor_index", str(i)) for i in range(2)
    ]
    evaluator = _join(start, "eval-actor", addresses, "on_evaluator")
    learner = _join(start, "learner", addresses, "on_learner")

    def train_step() -> int:
        assert learner.process.poll() is None, learner.process.communicate()
        return _last(tmp_path / "on_learner", "learner", "train_step")

    def wait_for_message(text: str) -> None:
        log = tmp_path / "on_learner" / "logs" / "learner.log"
        wait_for(lambda: train_step() and f"localhost:{ports[1]} {text}" in log.read_text(), text)

    wait_for(lambda: train_step() > 0, "training")
    wait_for(lambda: _last(on_second, "replay", "samples") > 0, "the second server to be sampled")
    # Without this actor, the rate limiters block training: no step of this test has to be quick.
    actors[0].freeze()
    # What it restores has been sampled. The first checkpoint from here on may have been begun before that.
    older = set(sealed(on_second / "checkpoints" / "replay"))
    wait_for(lambda: len({*sealed(on_second / "checkpoints" / "replay")} - older) > 1, "two more checkpoints")
    second.process.kill()
    second.finish()
    wait_for_message("does not answer: training goes on with the transitions of the other 1 of 2")
    reached = train_step()
    actors[0].thaw()
    wait_for(lambda: train_step() > reached, "training with the first server alone")

    actors[0].freeze()
    seen = len(records(on_second / "metrics" / "replay.jsonl"))
    second = _serve(start, ports[1], f"on_{ports[1]}")
    wait_for_message("answers again: training goes on with the transitions of 2 of 2")

    def grew(key: str) -> bool:
        figures = [record[key] for record in records(on_second / "metrics" / "replay.jsonl")[seen:]]
        return bool(figures) and figures[-1] > figures[0] > 0  # It was restored from its checkpoint.

    wait_for(lambda: grew("inserts") and grew("samples"), "the second server to be written to and sampled")
    actors[0].thaw()

    for command in (learner, evaluator, *actors):
        assert command.finish() == 0, command.err
    for server in (first, second):
        server.interrupt(signal.SIGTERM)
        assert server.finish() == 143, server.err
    assert marked_processes(mark) == []
    assert _last(tmp_path / "on_learner", "learner", "train_step") == _TRAIN_STEPS
    inserts = [_last(directory, "replay", "inserts") for directory in (on_first, on_second)]
    assert max(inserts) < _last(tmp_path / "on_learner", "learner", "env_steps") <= sum(inserts)
    evaluations = records(tmp_path / "on_evaluator" / "metrics" / "eval.jsonl")
    assert [record["train_step"] for record in evaluations] == [0, _TRAIN_STEPS]


def test_a_second_server_of_another_run_or_configuration_is_refused(
    start: Callable[..., Command], tmp_path: Path, ports: tuple[int, int]
) -> None:
    addresses = ",".join(f"localhost:{port}" for port in ports)

    def act(directory: str) -> Command:
        return _join(start, "collect-actor", addresses, directory, "--actor_index", "1")

    def manifest(directory: str) -> dict[str, object]:
        path = tmp_path / directory / "manifest.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def refusal(command: Command) -> str:
        assert command.finish() == 2, command.err
        return command.err.splitlines()[-1]

    first, second = _serve(start, ports[0], "first"), _serve(start, ports[1], "second")
    actor = act("acting")
    wait_for(lambda: manifest("acting").get("other_servers"), "the actor to join the second server")
    run_ids = [manifest(name)["run_id"] for name in ("first", "second")]
    assert manifest("acting")["run_id"] == run_ids[0]
    assert manifest("acting")["other_servers"] == {"1": run_ids[1]}

    second.process.kill()
    second.finish()
    other = _serve(start, ports[1], "other", "seed=9")
    assert actor.finish() == 1
    replaced = (
        f"localhost:{ports[1]} has been replaced by one of run {manifest('other')['run_id']}; it served"
    )
    assert replaced in actor.err.splitlines()[-1]
    assert f"has replay server 2 in run {run_ids[1]}" in refusal(act("acting"))
    assert refusal(act("again")).endswith("with another configuration: seed: 0 here, 9 there")
    for server in (first, other):
        server.interrupt(signal.SIGTERM)
        assert server.finish() == 143
