"""The page and the pictures of a real run, while it is going on and at its end."""

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.page_text import page_text
from tests.support.processes import REPOSITORY, TINY_RUN, Command, kill_role, records, wait_for

pytestmark = pytest.mark.integration

_SETTINGS = ("learn.train_steps=1000", "evaluate.interval=500", "collect.actors=1")


def shown(value: float) -> str:
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:,.2f}"


def report(start: Callable[..., Command], *arguments: str) -> Command:
    command = start("-m", "actorlearner", "report", *arguments)
    assert command.finish() == 0, command.err
    return command


def plot(start: Callable[..., Command], *arguments: str) -> Command:
    command = start("-m", "actorlearner", "plot", *arguments)
    assert command.finish() == 0, command.err
    return command


def test_page_and_pictures_tell_of_a_run_with_a_death(
    start: Callable[..., Command], mark: str, tmp_path: Path
) -> None:
    run = start(
        *("-m", "actorlearner", "local", "--config", str(REPOSITORY / "configs" / "td3_pendulum.yaml")),
        *("--run_dir", str(tmp_path / "run"), "--set", *TINY_RUN, *_SETTINGS),
    )
    events = tmp_path / "run" / "events.jsonl"
    metrics = tmp_path / "run" / "metrics"
    wait_for(lambda: records(metrics / "learner.jsonl"), "the first train steps", interval_s=0.01)
    kill_role(mark, "collect-actor-0")
    wait_for(lambda: "died" in events.read_text(), "the death to be recorded", interval_s=0.01)
    early = report(start, "run", "--out", "early.html")
    assert early.out == "written: early.html\n"
    assert plot(start, "run", "--out", "early.png").out == "written: early.png\nwritten: early.csv\n"
    assert run.finish() == 0, run.err

    assert plot(start, "run").err == ""
    for picture in ("early.png", "run/plot.png"):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")
    assert b"</svg>" in (tmp_path / "run" / "plot.svg").read_bytes()

    best = json.loads((metrics / "best.jsonl").read_text())
    filmed = tmp_path / "run" / "videos" / f"best-{best['train_step']}.mp4"
    filmed.unlink(missing_ok=True)  # The first report may have been late enough for it.
    end = report(start, "run")
    assert end.out == "written: run/report.html\n"
    assert end.err == "filming an episode of the best policy ...\n"
    page = (tmp_path / "run" / "report.html").read_text()
    assert not re.search(r"""(?:src|href|srcset)\s*=\s*["'](?!data:)|@import|url\(""", page), (
        "it needs others"
    )
    video = re.search(r'<video [^>]*src="data:video/mp4;base64,([^"]+)"', page)
    assert video
    assert base64.b64decode(video[1]) == filmed.read_bytes()

    text = page_text(tmp_path / "run" / "report.html")
    assert " td3 on Pendulum-v1, seed 0 finished " in text
    for record in records(metrics / "eval.jsonl"):
        average = shown(record["average_return"])
        assert f" {record['train_step']:,} {record['env_steps']:,} {average} " in text
    assert re.search(r" collect-actor-0 died killed by signal 9 ", text)
    assert re.search(r" collect-actor-0 2 1 0 [\d,]+ env steps/s [\d,]+ MiB ", text)
    assert re.search(r" learner 1 0 0 [\d,]+ train steps/s ", text)
    assert " learn.train_steps 1000 100000 " in text
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert f" run id {manifest['run_id']} " in text
    assert f" tensorflow {manifest['versions']['tensorflow']} " in text
    assert f" best policy {shown(best['average_return'])} ± " in text

    written = filmed.stat().st_mtime_ns
    report(start, "run")  # Now that there is a video.
    assert filmed.stat().st_mtime_ns == written
