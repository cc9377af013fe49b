"""The command `actorlearner plot`: refused arguments, written files and printed lines."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from actorlearner.cli import main as cli
from actorlearner.inspect.plot.figure import COLOURS
from tests.support.processes import REPOSITORY
from tests.support.recorded_run import evaluation, recorded_run, trained_run

ALLOWED = "allowed: the directory of a run"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 2) -> list[str]:
    """Calls the command, which must draw nothing; returns the problems that it prints."""
    before = sorted(Path().rglob("*"))
    assert cli.main(["plot", *arguments]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert sorted(Path().rglob("*")) == before
    return [line.removeprefix("actorlearner: error: ") for line in err.splitlines()]


def test_a_directory_without_a_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained_run(tmp_path / "run")
    spoilt, _ = trained_run(tmp_path / "spoilt")
    spoilt.config.write_text("seed: many\n")
    Path("empty").mkdir()
    lines = refused(capsys, "absent", "empty", "run/config.yaml", "run", "./run", "spoilt")
    assert lines[:4] == [
        f"RUN_DIR: 'absent' cannot be used (it is not a directory); {ALLOWED}",
        f"RUN_DIR: 'empty' cannot be used (there is no config.yaml in it); {ALLOWED}",
        f"RUN_DIR: 'run/config.yaml' cannot be used (it is not a directory); {ALLOWED}",
        "RUN_DIR: './run' is given twice; allowed: each only once",
    ]
    assert all("spoilt/config.yaml" in line for line in lines[4:])


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("plot.pdf", "allowed: a file that ends in .png or .svg"),
        ("plot", "allowed: a file that ends in .png or .svg"),
        ("png", "allowed: a file that ends in .png or .svg"),
        ("", "allowed: a file that ends in .png or .svg"),
        ("there.png", "(it is a directory); allowed: a file to be made or replaced"),
        ("file/plot.png", "file is not a directory); allowed: a file to be made or replaced"),
    ],
)
def test_other_files_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], out: str, message: str
) -> None:
    trained_run(tmp_path / "run")
    Path("there.png").mkdir()
    Path("file").touch()
    (line,) = refused(capsys, "run", f"--out={out}")
    assert line.startswith(f"--out: {out!r} cannot be used")
    assert line.endswith(message)


def test_no_run_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = refused(capsys)
    assert line.startswith("the following arguments are required: RUN_DIR")


def test_runs_without_anything_to_draw_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded_run(tmp_path / "young")
    assert refused(capsys, "young", code=1) == [
        "young: no evaluation yet, so it has no returns to draw",
        "there is nothing to draw: no evaluation, and fewer than two reports of a learner",
    ]


def test_more_groups_than_colours_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"run{i}" for i in range(len(COLOURS) + 1)]
    for i, name in enumerate(names):
        trained_run(tmp_path / name, f"learn.batch_size={i + 1}")
    message = "RUN_DIR: 8 configurations cannot be told apart; allowed: 7 in one picture"
    assert refused(capsys, *names) == [message]


def test_one_run_gets_its_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained_run(tmp_path / "run")
    assert cli.main(["plot", "run"]) == 0
    files = [Path("run") / f"plot.{kind}" for kind in ("png", "svg")]
    written = [*files, Path("run/plot.csv")]
    assert capsys.readouterr() == ("".join(f"written: {file}\n" for file in written), "")
    assert files[0].read_bytes().startswith(b"\x89PNG")
    assert b"</svg>" in files[1].read_bytes()


def test_pictures_of_several_runs_are_written_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained_run(tmp_path / "first")
    recorded_run(tmp_path / "second", "seed=1", replay=[{"time": 0}])
    assert cli.main(["plot", "first", "second"]) == 0
    assert capsys.readouterr() == (
        "written: plot.png\nwritten: plot.svg\nwritten: plot.csv\n",
        "second: no evaluation yet, so it has no returns to draw\n",
    )


def test_the_picture_that_is_asked_for_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded_run(tmp_path / "run", evaluations=[evaluation(1, 0, [3.0])])
    assert cli.main(["plot", "run", "--out", "new/picture.SVG"]) == 0
    assert capsys.readouterr().out == "written: new/picture.SVG\nwritten: new/picture.csv\n"
    assert b"</svg>" in Path("new/picture.SVG").read_bytes()
    assert list(Path("run").glob("plot*")) == []


def test_it_needs_no_tensorflow(tmp_path: Path) -> None:
    """It also needs no window and does not use pyplot's global state."""
    trained_run(tmp_path / "run")
    script = (
        "import sys; from actorlearner.cli import main as cli; code = cli.main(['plot', 'run']); "
        "print(*sys.modules, sep='\\n', file=sys.stderr); sys.exit(code)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
    )
    modules = set(ended.stderr.splitlines())
    assert {"scipy.stats", "matplotlib.figure"} <= modules
    assert modules.isdisjoint({"tensorflow", "reverb", "tf_agents", "matplotlib.pyplot"})
