"""Writes the report: one HTML file."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import jinja2

from actorlearner.acting.best_record import read_best
from actorlearner.config.schema import Config
from actorlearner.errors import ERROR_PREFIX, EXIT_FINISHED, ConfigurationError, RunError
from actorlearner.inspect.plot.runs import RecordedRun, read_runs
from actorlearner.inspect.report.contents import read_contents
from actorlearner.inspect.report.pictures import data_url, draw
from actorlearner.process.spawn import die_with_parent, module_command
from actorlearner.records.disk import write_atomically
from actorlearner.records.run_directory import RunDirectory
from actorlearner.records.run_files import RunFiles

_FPS = 30


def run_report(runs: Sequence[tuple[RunDirectory, Config]], out: Path | None) -> int:
    """Writes the page and prints its path; prints a line on standard error for each omitted part.

    Args:
      runs: the run directory with its configuration, or one for each role; the run may be running.
      out: the HTML file; None for report.html in the first directory.

    Returns:
      The exit code.

    Raises:
      ConfigurationError: a manifest cannot be read, or the directories hold several runs.
      RunError: the page cannot be written.
    """
    read = read_runs(runs, lambda line: print(line, file=sys.stderr))
    if len(read) > 1:
        names = " and ".join(repr(run.name) for run in read[:2])
        problem = f"RUN_DIR: {names} hold different runs; allowed: one run, or the directories of its roles"
        raise ConfigurationError([problem])
    files = RunFiles([directory for directory, _ in runs])
    path = files.directories[0].path / "report.html" if out is None else out
    try:
        page = _page(files, read[0])
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, page)
    except OSError as error:
        raise RunError(f"the report cannot be written: {error}") from error
    print(f"written: {os.path.relpath(path) if path.absolute().is_relative_to(Path.cwd()) else path}")
    return EXIT_FINISHED


def _page(files: RunFiles, run: RecordedRun) -> str:
    video, about_video = None, "There is no best policy: evaluation is off."
    if run.config.evaluate.interval is not None:
        video, about_video = best_video(files.of_eval_actor)
    if video is None:
        print(about_video, file=sys.stderr)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("actorlearner.inspect.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2").render(
        **read_contents(files, run),
        pictures=draw(run),
        video=None if video is None else data_url(video.read_bytes(), "video/mp4"),
        still=_still(video),
        about_video=about_video,
    )


def _still(video: Path | None) -> str | None:
    """Returns the still picture that is shown until the video plays."""
    still = video and video.with_suffix(".png")
    return data_url(still.read_bytes(), "image/png") if still and still.exists() else None


def best_video(directory: RunDirectory) -> tuple[Path | None, str]:
    """Finds the video of the best policy, or films one episode and blocks until it is done.

    Args:
      directory: the run directory.

    Returns:
      The mp4 file and its caption; or None and the reason.
    """
    best = read_best(directory.best_policy)
    if best is None:
        return None, "There is no best policy yet."
    path = directory.videos / f"best-{best.train_step}.mp4"
    if not path.exists():
        why = _film(directory.best_policy)
        if why:
            return None, f"The best policy was not filmed: {why}"
        # Its name has the train step of the filmed policy: a running run may have found a better one.
        path = max(directory.videos.glob("best-*.mp4"), key=lambda video: video.stat().st_mtime)
    return path, f"policies/best, train step {int(path.stem.removeprefix('best-')):,}"


def _film(policy: Path) -> str:
    """Films an episode into the directory of videos, in another process, which imports TensorFlow.

    Returns:
      An error message, or "".
    """
    print("filming an episode of the best policy ...", file=sys.stderr)
    parent = os.getpid()
    flags = ("--episodes", "1", "--fps", str(_FPS))
    process = subprocess.run(
        module_command("actorlearner", "video", str(policy), *flags),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
        preexec_fn=lambda: die_with_parent(parent),
    )
    if process.returncode == 0:
        return ""
    lines = process.stderr.strip().splitlines() or [f"exit code {process.returncode}"]
    return lines[-1].removeprefix(ERROR_PREFIX)
