"""Pictures of a real run: while it is going on, and after its end."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY, TINY_RUN, Command, records, wait_for

pytestmark = pytest.mark.integration


def test_a_run_is_drawn_while_it_is_going_on_and_at_its_end(
    start: Callable[..., Command], tmp_path: Path
) -> None:
    run = start(
        *("-m", "actorlearner", "local", "--config", str(REPOSITORY / "configs" / "td3_pendulum.yaml")),
        *("--run_dir", "run", "--set", *TINY_RUN, "learn.train_steps=600", "evaluate.interval=300"),
    )
    metrics = tmp_path / "run" / "metrics"
    wait_for(lambda: records(metrics / "eval.jsonl"), "the first evaluation", interval_s=0.01)
    early = start("-m", "actorlearner", "plot", "run", "--out", "early.png")
    assert early.finish() == 0, early.err
    assert early.out == "written: early.png\nwritten: early.csv\n"
    assert run.finish() == 0, run.err
    end = start("-m", "actorlearner", "plot", "run")
    assert end.finish() == 0, end.err
    assert end.err == ""
    for file in ("early.png", "run/plot.png"):
        assert (tmp_path / file).read_bytes().startswith(b"\x89PNG")
    assert b"</svg>" in (tmp_path / "run" / "plot.svg").read_bytes()
