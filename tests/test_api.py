"""The Python API on recorded runs; tests/integration/test_api.py has a real one."""

from pathlib import Path

import pytest

from actorlearner import api
from actorlearner.agents.configuration import load_config
from actorlearner.api import Run
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError, RunError
from actorlearner.records.run_directory import RunDirectory
from tests.support.recorded_run import evaluation, recorded_run, trained_run


def _run(directory_and_config: tuple[RunDirectory, Config]) -> Run:
    directory, config = directory_and_config
    return Run(directory.path, config)


@pytest.mark.parametrize(("evaluated", "finished"), [(0, False), (400, False), (1_000, True)])
def test_a_run_has_finished_once_its_last_train_step_is_evaluated(
    tmp_path: Path, evaluated: int, finished: bool
) -> None:
    evaluations = [evaluation(t, t, [1.0]) for t in range(0, evaluated + 1, 200)]
    run = _run(recorded_run(tmp_path / "run", "learn.train_steps=1000", evaluations=evaluations))
    assert run.finished is finished
    assert run.evaluations()[-1]["train_step"] == evaluated


def test_a_run_is_resumed_as_it_was_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    directory, config = trained_run(tmp_path / "run", "seed=3")
    started: list[tuple[str, Config]] = []

    class Command:
        """Stands in for a LocalCommand that ends at once."""

        stdout = ("resuming at train step 1\n",)

        def __init__(self, *arguments: str, piped: bool) -> None:
            flags = dict(zip(arguments[::2], arguments[1::2], strict=True))
            started.append((flags["--run_dir"], load_config(flags["--config"])))

        def finish(self) -> None:
            pass

    monkeypatch.setattr(api, "LocalCommand", Command)
    assert api.resume(directory.path) == Run(directory.path, config)
    assert started == [(str(directory.path), config)]
    assert capsys.readouterr().out == "resuming at train step 1\n"


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
