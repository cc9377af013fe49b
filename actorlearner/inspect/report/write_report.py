"""What `actorlearner report` does."""

import base64
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import jinja2

from actorlearner.config.schema import Config
from actorlearner.errors import EXIT_FINISHED, ConfigurationError, RunError
from actorlearner.inspect.plot.runs import Run, read_runs
from actorlearner.inspect.report.contents import gather
from actorlearner.inspect.report.film import best_video
from actorlearner.inspect.report.pictures import draw
from actorlearner.records.run_directory import RunDirectory
from actorlearner.records.run_files import RunFiles
from actorlearner.records.seal import write_atomically

_PAGE = "page.html.j2"


def run_report(runs: Sequence[tuple[RunDirectory, Config]], out: Path | None) -> int:
    """Writes the page and says where it is; what is left out of it is a line on standard error.

    Args:
      runs: the directory of the run, which may be going on, with what runs there; or those of its roles.
      out: the page; None for report.html in the first directory.

    Returns:
      The exit code.

    Raises:
      ConfigurationError: a manifest cannot be read, or they are not one run.
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


def _page(files: RunFiles, run: Run) -> str:
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
    return environment.get_template(_PAGE).render(
        contents=gather(files, run),
        pictures=draw(run),
        video=None if video is None else _url(video, "video/mp4"),
        still=_still(video),
        about_video=about_video,
    )


def _still(video: Path | None) -> str | None:
    """The picture that stands for the video until it is played."""
    still = video and video.with_suffix(".png")
    return _url(still, "image/png") if still and still.exists() else None


def _url(path: Path, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
