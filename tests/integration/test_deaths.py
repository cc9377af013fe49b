"""Any role may be killed at any time: the run recovers by itself, and its report and pictures show it."""

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.page_text import page_text
from tests.support.processes import (
    REPOSITORY,
    TINY_RUN,
    Command,
    kill_role,
    marked_processes,
    records,
    saved_train_step,
    wait_for,
)

pytestmark = pytest.mark.integration

_TRAIN_STEPS = 3000


def _column(run: Path, name: str, key: str) -> list[int]:
    return [record[key] for record in records(run / "metrics" / f"{name}.jsonl")]


def test_roles_that_were_killed_are_started_again_and_the_run_finishes(
    start: Callable[..., Command], mark: str, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    config = str(REPOSITORY / "configs" / "td3_pendulum.yaml")
    command = start(
        *("-m", "actorlearner", "local", "--config", config, "--run_dir", "run", "--quiet"),
        *("--set", *TINY_RUN, f"learn.train_steps={_TRAIN_STEPS}", "evaluate.interval=1000"),
        *("collect.actors=1", "learn.checkpoint_interval=200", "replay.checkpoint_interval_s=1"),
        "environment.max_episode_steps=50",  # For a short video.
    )

    def wait_for_train_steps() -> None:
        """Waits for more train steps, so that the roles killed before are restarted and working."""
        wanted = saved_train_step(run) + 400

        def trained() -> bool:
            assert command.process.poll() is None, command.process.communicate()
            return saved_train_step(run) >= wanted

        wait_for(trained, f"train step {wanted}")

    wait_for_train_steps()
    counted = _column(run, "collect-0", "env_steps")[-1]
    kill_role(mark, "eval-actor")
    kill_role(mark, "collect-actor-0")  # Without it, the learner is blocked.
    wait_for_train_steps()
    kill_role(mark, "learner")
    wait_for_train_steps()
    kill_role(mark, "replay-server")
    assert command.finish() == 0, command.out + command.err
    for role in ("replay-server", "learner", "collect-actor", "eval-actor"):
        (line,) = [line for line in command.err.splitlines() if line.startswith(role) and "died" in line]
        assert "killed by signal 9; starting it again in 1 s (restart 1 of at most 10 in 10 minutes)" in line
    assert (command.out, len(command.err.splitlines())) == ("", 4)
    assert marked_processes(mark) == []
    assert _column(run, "learner", "train_step")[-1] == _TRAIN_STEPS
    # The new learner may repeat a train step that the killed one had evaluated.
    evaluated = _column(run, "eval", "train_step")
    assert sorted(set(evaluated)) == list(range(0, _TRAIN_STEPS + 1, 1000))
    assert evaluated[-1] == _TRAIN_STEPS
    env_steps = _column(run, "collect-0", "env_steps")  # Except for env steps not recorded yet.
    assert env_steps == sorted(env_steps)
    assert env_steps[-1] > counted
    _check_pictures(start, run)
    _check_page(start, run)


def _inspected(start: Callable[..., Command], what: str) -> Command:
    command = start("-m", "actorlearner", what, "run")
    assert command.finish() == 0, command.err
    return command


def _check_pictures(start: Callable[..., Command], run: Path) -> None:
    assert _inspected(start, "plot").err == ""
    assert (run / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert b"</svg>" in (run / "plot.svg").read_bytes()


def _check_page(start: Callable[..., Command], run: Path) -> None:
    report = _inspected(start, "report")
    assert report.out == "written: run/report.html\n"
    assert report.err == "filming an episode of the best policy ...\n"
    page = (run / "report.html").read_text()
    assert not re.search(r"""(?:src|href|srcset)\s*=\s*["'](?!data:)|@import|url\(""", page), (
        "it needs others"
    )
    best = json.loads((run / "metrics" / "best.jsonl").read_text())
    video = re.search(r'<video [^>]*src="data:video/mp4;base64,([^"]+)"', page)
    assert video
    filmed = run / "videos" / f"best-{best['train_step']}.mp4"
    assert base64.b64decode(video[1]) == filmed.read_bytes()

    text = page_text(run / "report.html")
    assert " td3 on Pendulum-v1, seed 0 finished " in text
    latest = {record["train_step"]: record for record in records(run / "metrics" / "eval.jsonl")}
    for record in latest.values():
        average = _shown(record["average_return"])
        assert f" {record['train_step']:,} {record['env_steps']:,} {average} " in text
    assert re.search(r" collect-actor-0 died killed by signal 9 ", text)
    assert re.search(r" collect-actor-0 2 1 0 [\d,.]+ env steps/s [\d,]+ MiB ", text)
    assert re.search(r" learner 2 1 0 [\d,.]+ train steps/s ", text)
    assert " learn.train_steps 3000 100000 " in text
    manifest = json.loads((run / "manifest.json").read_text())
    assert f" run id {manifest['run_id']} " in text
    assert f" tensorflow {manifest['versions']['tensorflow']} " in text
    assert f" best policy {_shown(best['average_return'])} ± " in text


def _shown(value: float) -> str:
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:,.2f}"
