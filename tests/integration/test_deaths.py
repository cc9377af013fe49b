"""Any role may be killed at any time, and the run goes on without help."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY, TINY_RUN, Command, marked_processes, records, wait_for

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

_TRAIN_STEPS = 4000


def _train_step(run: Path) -> int:
    steps = [record["train_step"] for record in records(run / "metrics" / "learner.jsonl")]
    return int(steps[-1]) if steps else 0


def _kill(mark: str, role: str) -> None:
    """Kills the role's process, once there is one."""

    def find() -> list[int]:
        return [
            pid
            for pid in marked_processes(mark)
            if role in Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        ]

    (pid,) = wait_for(find, f"the process of the {role}")
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("role", ["replay-server", "learner", "collect-actor", "eval-actor"])
def test_a_role_that_was_killed_is_started_again_and_the_run_finishes(
    start: Callable[..., Command], mark: str, tmp_path: Path, role: str
) -> None:
    run = tmp_path / "run"
    command = start(
        *("-m", "actorlearner", "local", "--config", str(REPOSITORY / "configs" / "sac_pendulum.yaml")),
        *(
            "--run_dir",
            "run",
            "--set",
            *TINY_RUN,
            f"learn.train_steps={_TRAIN_STEPS}",
            "evaluate.interval=1000",
        ),
        *("learn.checkpoint_interval=200", "replay.checkpoint_interval_s=1"),
    )

    def training() -> bool:
        assert command.process.poll() is None, command.process.communicate()
        return _train_step(run) > 500

    wait_for(training, "train step 500")
    _kill(mark, role)
    assert command.finish(timeout_s=200) == 0, command.out + command.err
    assert f"{role}" in command.out
    assert (
        "died: killed by signal 9; starting it again in 1 s (restart 1 of at most 10 in 10 minutes)"
        in command.out
    )
    assert marked_processes(mark) == []
    assert _train_step(run) == _TRAIN_STEPS
    evaluated = [record["train_step"] for record in records(run / "metrics" / "eval.jsonl")]
    assert evaluated == list(range(0, _TRAIN_STEPS + 1, 1000))
    env_steps = records(run / "metrics" / "collect-0.jsonl")[-1]["env_steps"]
    assert env_steps >= _TRAIN_STEPS
