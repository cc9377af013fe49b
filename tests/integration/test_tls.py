"""Roles by hand with mutual TLS: they train, and nobody without the run's certificate reaches the server."""

import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.support import knock
from tests.support.processes import TINY_RUN, Command, marked_processes, records, wait_for

pytestmark = [pytest.mark.integration, pytest.mark.long]

_CONFIG = ("--config", "sac_pendulum", "--tls", "run.pem")


def test_roles_with_a_certificate_train_and_a_stranger_is_refused(
    start: Callable[..., Command], mark: str, tmp_path: Path, free_port: int
) -> None:
    def command(*arguments: str, fresh: bool = False) -> Command:
        return start("-m", "actorlearner", *arguments, fresh=fresh)

    def role(name: str, *options: str, fresh: bool = False) -> Command:
        settings = [*TINY_RUN, "learn.train_steps=500", "evaluate.interval=500"]
        arguments = (*_CONFIG, "--run_dir", name, *options, "--set", *settings)
        return command(name, *arguments, fresh=fresh)

    for name in ("run.pem", "other.pem"):
        assert command("certificate", name).finish() == 0
    server = role("replay-server", "--port", str(free_port), fresh=True)  # It executes itself again.
    to_server = ("--replay_address", f"localhost:{free_port}")
    actor = role("collect-actor", *to_server, "--actor_index", "0")
    evaluator = role("eval-actor", *to_server)
    replay = tmp_path / "replay-server" / "metrics" / "replay.jsonl"

    def has_transitions() -> bool:
        assert actor.process.poll() is None
        return any(record["inserts"] for record in records(replay))

    wait_for(has_transitions, "the first transitions")

    listening = [each for each in psutil.net_connections("tcp") if each.status == psutil.CONN_LISTEN]
    assert [each.laddr.port for each in listening if each.pid == server.process.pid] == [free_port]
    assert knock.stock("localhost", free_port) == "refused"
    assert knock.plain("localhost", free_port) == "closed"
    assert knock.tls("localhost", free_port) != "served"
    assert knock.tls("localhost", free_port, file=str(tmp_path / "other.pem")) != "served"
    assert knock.tls("localhost", free_port, file=str(tmp_path / "run.pem")) == "served"
    assert (
        "refused a connection from 127.0.0.1"
        in (tmp_path / "replay-server/logs/replay-server.log").read_text()
    )
    status = command("status", *to_server, "--tls", "run.pem")
    assert status.finish() == 0, status.err
    assert f"served at localhost:{free_port}" in status.out
    health = command("health", "--run_dir", "replay-server", *to_server, "--tls", "run.pem")
    assert health.finish() == 0, health.out

    learner = role("learner", *to_server)
    for each in (learner, evaluator, actor):
        assert each.finish() == 0, each.err
    server.interrupt(signal.SIGTERM)
    assert server.finish() == 143, server.err
    assert marked_processes(mark) == []
    evaluations = records(tmp_path / "eval-actor" / "metrics" / "eval.jsonl")
    assert [record["train_step"] for record in evaluations] == [0, 500]
