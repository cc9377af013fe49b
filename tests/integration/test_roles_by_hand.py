"""The four roles started by hand with the launch scripts, with nothing shared but the address."""

import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY, TINY_RUN, Command, marked_processes, records

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

_PENDULUM = str(REPOSITORY / "configs" / "sac_pendulum.yaml")


def test_four_roles_with_four_run_directories_train(
    start: Callable[..., Command], mark: str, tmp_path: Path, free_port: int
) -> None:
    def role(script: str, directory: str, *options: str) -> Command:
        settings = [*TINY_RUN, "learn.train_steps=500", "evaluate.interval=500"]
        path = str(REPOSITORY / "launch" / script)
        return start(path, "--config", _PENDULUM, "--run_dir", directory, *options, "--set", *settings)

    to_server = ["--replay_address", f"localhost:{free_port}"]
    # The learner first: every role waits for the replay server by itself.
    learner = role("learner.py", "on_learner", *to_server)
    actor = role("collect_actor.py", "on_actor", *to_server, "--actor_index", "0")
    evaluator = role("eval_actor.py", "on_evaluator", *to_server)
    server = role("replay_server.py", "on_server", "--port", str(free_port))

    assert learner.finish() == 0, learner.err
    assert evaluator.finish() == 0, evaluator.err
    assert actor.finish() == 0, actor.err
    server.interrupt(signal.SIGTERM)
    assert server.finish(timeout_s=10) == 143, server.err
    assert marked_processes(mark) == []

    assert records(tmp_path / "on_learner" / "metrics" / "learner.jsonl")[-1]["train_step"] == 500
    evaluations = records(tmp_path / "on_evaluator" / "metrics" / "eval.jsonl")
    assert [record["train_step"] for record in evaluations] == [0, 500]
    assert records(tmp_path / "on_actor" / "metrics" / "collect-0.jsonl")[-1]["policy_train_step"] > 0
    assert records(tmp_path / "on_server" / "metrics" / "replay.jsonl")[-1]["samples"] > 0
    for command in (learner, actor, evaluator, server):
        assert command.out == ""
        for line in command.err.splitlines():
            assert re.match(r"\d\d:\d\d:\d\d (replay-server|collect-actor-0|eval-actor|learner): ", line)


def test_a_role_of_another_environment_is_refused(start: Callable[..., Command], free_port: int) -> None:
    address = f"localhost:{free_port}"
    server = start("-m", "actorlearner", "replay-server", "--config", _PENDULUM, "--port", str(free_port))
    cheetah = str(REPOSITORY / "configs" / "sac_halfcheetah.yaml")
    actor = start(
        "-m", "actorlearner", "collect-actor", "--config", cheetah, "--replay_address", address,
        "--actor_index", "0",
    )  # fmt: skip
    assert actor.finish() == 1
    assert "stores transitions of another environment" in actor.err.splitlines()[-1]
    server.interrupt(signal.SIGTERM)
    assert server.finish(timeout_s=20) == 143


def test_a_port_in_use_is_refused(start: Callable[..., Command], free_port: int) -> None:
    arguments = ["-m", "actorlearner", "replay-server", "--config", _PENDULUM, "--port", str(free_port)]
    first = start(*arguments, "--run_dir", "first")
    assert first.process.stderr is not None
    # Standard error is a pipe; its lines come as the role says them.
    while "serving" not in first.process.stderr.readline():
        assert first.process.poll() is None
    second = start(*arguments, "--run_dir", "second")
    assert second.finish() == 1
    assert f"port {free_port} cannot be listened on" in second.err.splitlines()[-1]
    first.interrupt(signal.SIGTERM)
    assert first.finish(timeout_s=10) == 143
