"""A run on a real Ray cluster of three nodes, which loses a node and the command that started it."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import reverb
from ray.cluster_utils import Cluster

from actorlearner.replay.reverb_calls import UNREACHABLE
from tests.support import knock, numbered_run
from tests.support.processes import (
    MARK_VARIABLE,
    PATIENCE_S,
    REPOSITORY,
    TINY_RUN,
    Command,
    marked_processes,
    records,
    wait_for,
)

pytestmark = [pytest.mark.integration, pytest.mark.ray]

_ACTORS = 4
_TRAIN_STEPS = 1_500
_TRAINING_S = 40.0
"""How long the environments make training last."""

_IN_FLIGHT = 3 * 32
"""The transitions that a killed actor loses at most: the item being filled and two on their way."""


@pytest.fixture(name="cluster")
def _cluster(start: Callable[..., Command], mark: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A head without cores for collect actors; the test adds nodes. It ends before `start` does."""
    monkeypatch.setenv(MARK_VARIABLE, mark)
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    yield cluster
    cluster.shutdown()
    wait_for(lambda: not marked_processes(mark), "the end of all processes")


def test_a_run_survives_the_loss_of_a_node_and_of_its_command(
    start: Callable[..., Command], cluster: Cluster, tmp_path: Path
) -> None:
    config = numbered_run.write_config(tmp_path, _TRAIN_STEPS, _TRAINING_S, actors=_ACTORS)

    def command() -> Command:
        arguments = ("--config", str(config), "--run_dir", "run", "--collect_actors", str(_ACTORS))
        return start("-m", "actorlearner", "ray", *arguments, "--address", cluster.address)

    first = command()
    metrics = tmp_path / "run" / "metrics" / "learner.jsonl"
    # Only now: the run is on the head then, and its collect actors wait for nodes.
    wait_for((tmp_path / "run" / "logs" / "ray.log").exists, "the run")
    nodes = [cluster.add_node(num_cpus=_ACTORS) for _ in range(2)]
    wait_for(lambda: _while_running(first, records(metrics)), "train steps")
    first.process.kill()
    first.finish()
    _check_refusals(tmp_path)

    before = records(metrics)[-1]["train_step"]
    for node in nodes:  # One of them may have none of the actors.
        cluster.remove_node(node, allow_graceful=False)
        cluster.add_node(num_cpus=_ACTORS)
    # Ray may still list the removed node, and a command would connect to it.
    cluster.wait_for_nodes(PATIENCE_S)
    wait_for(lambda: records(metrics)[-1]["train_step"] > before + 100, "training without the command")
    second = command()
    assert second.finish() == 0, second.err
    assert second.out.startswith("attached to the run in ")
    output = (tmp_path / "run" / "logs" / "ray.log").read_text()
    assert "died: its node or its Ray actor is gone; starting it again in 1 s" in output
    evaluations = records(metrics.with_name("eval.jsonl"))
    assert [each["train_step"] for each in evaluations] == [0, 500, 1000, 1500]
    curve = [record["train_step"] for record in records(metrics)]
    assert curve == sorted(set(curve))
    assert curve[-1] == _TRAIN_STEPS
    account = numbered_run.account(tmp_path, config, tmp_path / "run")
    assert (account.duplicated, account.unknown, account.torn) == (0, 0, 0), account
    again = command()
    assert again.finish() == 0, again.err
    assert "this run has finished" in again.out


def _check_refusals(path: Path) -> None:
    """Nobody without the run's certificate reaches the replay server."""
    (line,) = [line for line in (path / "run/logs/ray.log").read_text().splitlines() if "by TLS, at " in line]
    address = line.rpartition(" ")[2]
    host, _, port = address.rpartition(":")
    with pytest.raises(UNREACHABLE):
        reverb.Client(address).server_info(timeout=3)
    assert knock.tls(host, int(port)) != "served"


def _while_running(command: Command, value: Any) -> Any:
    assert command.process.poll() is None, command.process.communicate()
    return value


def test_a_ray_of_this_machine_alone_ends_with_the_command(
    start: Callable[..., Command], mark: str, tmp_path: Path
) -> None:
    arguments = ("--config", "sac_pendulum", "--run_dir", "run", "--collect_actors", "1", "--set", *TINY_RUN)
    run = start("-m", "actorlearner", "ray", *arguments, RAY_TMPDIR="/tmp")  # Its sockets need a short path.
    metrics = tmp_path / "run" / "metrics" / "learner.jsonl"
    wait_for(lambda: _while_running(run, records(metrics)), "train steps")
    run.process.send_signal(signal.SIGTERM)  # Ray has a handler of its own for it.
    assert run.finish() == 143, run.err
    assert "stopped at train step" in run.out
    wait_for(lambda: not marked_processes(mark), "the end of all processes")
