"""The four roles started by hand, with nothing shared but the address."""

import re
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.page_text import page_text
from tests.support.ports import unused_port
from tests.support.processes import REPOSITORY, TINY_RUN, Command, marked_processes, records, wait_for
from tests.support.scrape import scrape

pytestmark = pytest.mark.integration

_PENDULUM = str(REPOSITORY / "configs" / "td3_pendulum.yaml")


def test_four_roles_with_four_run_directories_train(
    start: Callable[..., Command], mark: str, tmp_path: Path, free_port: int
) -> None:
    def role(name: str, directory: str, *options: str) -> Command:
        settings = ("learn.train_steps=500", "evaluate.interval=500", "environment.max_episode_steps=50")
        return start(*_role(name), "--run_dir", directory, *options, "--set", *TINY_RUN, *settings)

    to_server = ["--replay_address", f"localhost:{free_port}"]
    # The learner first: every role waits for the replay server by itself.
    learner = role("learner", "on_learner", *to_server, "--verbose")
    actor = role("collect-actor", "on_actor", *to_server, "--actor_index", "0", "--quiet")
    evaluator = role("eval-actor", "on_evaluator", *to_server)
    metrics_port = unused_port()
    to_scrape = ["--metrics_port", str(metrics_port)]
    server = role("replay-server", "on_server", "--port", str(free_port), *to_scrape)

    assert learner.finish() == 0, learner.err
    assert evaluator.finish() == 0, evaluator.err
    assert actor.finish() == 0, actor.err
    total = "actorlearner_replay_samples_total"
    wait_for(lambda: scrape(metrics_port).get(total, 0) >= 500 * 64, "all samples")
    server.interrupt(signal.SIGTERM)
    assert server.finish() == 143, server.err
    assert marked_processes(mark) == []

    assert records(tmp_path / "on_learner" / "metrics" / "learner.jsonl")[-1]["train_step"] == 500
    evaluations = records(tmp_path / "on_evaluator" / "metrics" / "eval.jsonl")
    assert [record["train_step"] for record in evaluations] == [0, 500]
    # On a fast machine, the next policy that it pulls is the last train step's, at which it ended by itself.
    assert records(tmp_path / "on_actor" / "metrics" / "collect-0.jsonl")[-1]["policy_train_step"] >= 0
    assert records(tmp_path / "on_server" / "metrics" / "replay.jsonl")[-1]["samples"] > 0
    for command in (learner, actor, evaluator, server):
        assert command.out == ""
    for line in (*evaluator.err.splitlines(), *server.err.splitlines()):
        assert re.match(r"\d\d:\d\d:\d\d (replay-server|eval-actor): ", line)
    assert learner.err == (tmp_path / "on_learner" / "logs" / "learner.log").read_text()
    # On an overloaded machine, it may log what it waits for.
    assert all(" waiting for " in line for line in actor.err.splitlines())
    _check_report(start, tmp_path)


def _check_report(start: Callable[..., Command], path: Path) -> None:
    """Checks that one page shows all roles, from directories that were copied together after the run."""
    report = start("-m", "actorlearner", "report", "on_learner", "on_actor", "on_evaluator", "on_server")
    assert report.finish() == 0, report.err
    assert report.out == "written: on_learner/report.html\n"
    text = page_text(path / "on_learner" / "report.html")
    assert " on_learner td3 on Pendulum-v1, seed 0 finished " in text
    assert " train steps 500 100 % of 500 " in text
    assert " best policy " in text
    rates = {"collect-actor-0": r"[\d,.]+ env steps/s", "learner": r"[\d,.]+ train steps/s"}
    for role in ("collect-actor-0", "eval-actor", "learner", "replay-server"):
        assert re.search(rf" {role} 1 0 \d+ {rates.get(role, '-')} [\d,]+ MiB ", text), text
    (video,) = (path / "on_evaluator" / "videos").glob("best-*.mp4")
    assert video.stat().st_size > 0


def _role(role: str) -> tuple[str, ...]:
    return ("-m", "actorlearner", role, "--config", _PENDULUM)


def test_a_port_in_use_is_refused(start: Callable[..., Command], free_port: int) -> None:
    with socket.create_server(("", free_port), reuse_port=True):  # It would share its port, as Reverb's does.
        server = start(*_role("replay-server"), "--port", str(free_port), "--run_dir", "run")
        assert server.finish() == 1
    assert f"port {free_port} cannot be listened on" in server.err.splitlines()[-1]
