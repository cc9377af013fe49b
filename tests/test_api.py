"""The Python API on recorded runs; tests/integration/test_api.py has real ones."""

from pathlib import Path

import pytest

from actorlearner.api import Run
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError, RunError
from actorlearner.records.run_directory import RunDirectory
from tests.support.recorded_run import recorded_run, trained_run


def _run(directory_and_config: tuple[RunDirectory, Config]) -> Run:
    directory, config = directory_and_config
    return Run(directory.path, config)


def test_a_plot_is_drawn_and_written(tmp_path: Path) -> None:
    run = _run(trained_run(tmp_path / "run"))
    assert run.plot().get_size_inches()[0] > 0
    run.plot(tmp_path / "new" / "curve.PNG")
    assert (tmp_path / "new" / "curve.PNG").read_bytes().startswith(b"\x89PNG")


def test_a_plot_of_nothing_is_refused(tmp_path: Path) -> None:
    run = _run(recorded_run(tmp_path / "run"))
    with pytest.raises(RunError, match="there is nothing to draw: no evaluation"):
        run.plot(tmp_path / "curve.png")
    assert not (tmp_path / "curve.png").exists()


@pytest.mark.parametrize("name", ["curve.jpg", "curve"])
def test_a_plot_in_another_format_is_refused(tmp_path: Path, name: str) -> None:
    run = _run(trained_run(tmp_path / "run"))
    with pytest.raises(ConfigurationError) as refused:
        run.plot(tmp_path / name)
    wrong = f"path: '{tmp_path / name}' cannot be used"
    assert refused.value.problems == (f"{wrong}; allowed: a file that ends in .png or .svg",)
