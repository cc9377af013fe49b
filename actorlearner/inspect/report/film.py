"""The video of a run's best policy, filmed by a process of its own where nobody has filmed it yet."""

import os
import subprocess
import sys
from pathlib import Path

from actorlearner.acting.best_record import read_best
from actorlearner.process.child_process import die_with_parent, module_command
from actorlearner.records.run_directory import RunDirectory

_FPS = 30


def best_video(directory: RunDirectory) -> tuple[Path | None, str]:
    """Finds the video of the best policy, or films one episode of it; says so, and blocks for so long.

    Args:
      directory: of the run.

    Returns:
      The mp4 file, and what it shows; or None, and why there is none.
    """
    best = read_best(directory.best_policy)
    if best is None:
        return None, "There is no best policy yet."
    path = directory.videos / f"{directory.best_policy.name}-{best.train_step}.mp4"
    if not path.exists():
        why = _film(directory.best_policy, path)
        if why:
            return None, f"The best policy was not filmed: {why}"
    return path, f"policies/best, train step {best.train_step:,}"


def _film(policy: Path, path: Path) -> str:
    """Films an episode; returns why not, if so. TensorFlow, which it needs, stays out of this process."""
    print("filming an episode of the best policy ...", file=sys.stderr)
    own = os.getpid()
    told = ("--episodes", "1", "--fps", str(_FPS), "--out", str(path))
    process = subprocess.run(
        module_command("actorlearner", "video", str(policy), *told),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
        preexec_fn=lambda: die_with_parent(own),
    )
    if process.returncode == 0:
        return ""
    lines = process.stderr.strip().splitlines() or [f"exit code {process.returncode}"]
    return lines[-1].removeprefix("actorlearner: error: ")
