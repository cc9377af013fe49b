"""What `actorlearner report` does."""

import base64
import os
import sys
from pathlib import Path

import jinja2

from actorlearner.config.schema import Config
from actorlearner.errors import EXIT_FINISHED, RunError
from actorlearner.plot.runs import read_runs
from actorlearner.report.contents import gather
from actorlearner.report.film import best_video
from actorlearner.report.pictures import draw
from actorlearner.run_directory import RunDirectory
from actorlearner.seal import write_atomically

_PAGE = "page.html.j2"


def run_report(directory: RunDirectory, config: Config, out: Path | None) -> int:
    """Writes the page and says where it is; what is left out of it is a line on standard error.

    Args:
      directory: of the run, which may be going on.
      config: what runs there.
      out: the page; None for report.html in the run directory.

    Returns:
      The exit code.

    Raises:
      ConfigurationError: the manifest cannot be read.
      RunError: the page cannot be written.
    """
    (run,) = read_runs([(directory, config)], lambda line: print(line, file=sys.stderr))
    video, about_video = best_video(directory)
    if video is None:
        print(about_video, file=sys.stderr)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("actorlearner.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    try:
        page = environment.get_template(_PAGE).render(
            contents=gather(directory, config, run),
            pictures=draw(run),
            video=None if video is None else _url(video, "video/mp4"),
            still=_still(video),
            about_video=about_video,
        )
        path = directory.path / "report.html" if out is None else out
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, page)
    except OSError as error:
        raise RunError(f"the report cannot be written: {error}") from error
    print(f"written: {os.path.relpath(path) if path.absolute().is_relative_to(Path.cwd()) else path}")
    return EXIT_FINISHED


def _still(video: Path | None) -> str | None:
    """The picture that stands for the video until it is played."""
    still = video and video.with_suffix(".png")
    return _url(still, "image/png") if still and still.exists() else None


def _url(path: Path, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
