"""The command `actorlearner report`: refused arguments, and the page of a run with few records."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from actorlearner.acting.best_record import BestRecord, EpisodeStatistics, write_best
from actorlearner.cli import main as cli
from actorlearner.inspect.report import write_report
from actorlearner.records.events import WARNED, EventLog
from tests.support.recorded_run import evaluation, recorded_run, trained_run


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["absent"],
            "RUN_DIR: 'absent' cannot be used (it is not a directory); allowed: the directory of a run",
        ),
        (
            ["run", "--out", "page.pdf"],
            "--out: 'page.pdf' cannot be used (its name does not end with .html); ",
        ),
        (["run", "--out", "there.html"], "--out: 'there.html' cannot be used (it is a directory); "),
        (
            ["run", "--out", "run/config.yaml/a.html"],
            "config.yaml is not a directory); allowed: a file NAME.html",
        ),
    ],
)
def test_unusable_arguments_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    trained_run(tmp_path / "run")
    (tmp_path / "there.html").mkdir()
    assert cli.main(["report", *arguments]) == 2
    out, err = capsys.readouterr()
    (line,) = err.splitlines()
    assert out == ""
    assert message in line


def test_a_run_that_has_just_begun_has_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded_run(tmp_path / "run")
    assert cli.main(["report", "run", "--out", "new/page.html"]) == 0
    out, err = capsys.readouterr()
    assert out == "written: new/page.html\n"
    assert err.splitlines() == [
        "run: no evaluation yet, so it has no returns to draw",
        "There is no best policy yet.",
    ]
    page = Path("new/page.html").read_text()
    assert "0 evaluations" in page
    assert "Not known: the last minute" in page


def test_html_in_names_and_messages_is_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory, _ = trained_run(tmp_path / "<b>run</b>")
    EventLog(directory.events, "learner").record(WARNED, "<script>alert('&')</script>")
    assert cli.main(["report", "<b>run</b>", "--out", "page.html"]) == 0
    page = Path("page.html").read_text()
    assert "<script" not in page
    assert "<b>run" not in page
    assert "&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;" in page


def test_only_the_newest_events_are_shown(tmp_path: Path) -> None:
    directory, _ = trained_run(tmp_path / "run")
    log = EventLog(directory.events, "learner")
    for number in range(205):
        log.record(WARNED, f"trouble {number}")
    assert cli.main(["report", "run"]) == 0
    page = Path("run/report.html").read_text()
    assert "5 older ones are in events.jsonl" in page
    assert re.findall(r">trouble (\d+)<", page) == [str(number) for number in range(5, 205)]


def test_directories_of_different_runs_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "other"):
        trained_run(tmp_path / name)
    assert cli.main(["report", "one", "other"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(
        "RUN_DIR: 'one' and 'other' hold different runs; allowed: one run, or the directories of its roles"
    )
    assert not Path("one/report.html").exists()


def test_a_run_without_evaluation_has_a_page_without_returns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded_run(tmp_path / "off", "evaluate.interval=null")
    assert cli.main(["report", "off", "--out", "off.html"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "off: evaluation is off, so it has no returns to draw",
        "There is no best policy: evaluation is off.",
    ]
    page = Path("off.html").read_text()
    assert "Evaluation is off (<code>evaluate.interval: null</code>)" in page
    assert "Return against" not in page


def test_the_metrics_of_info_have_pictures(tmp_path: Path) -> None:
    recorded_run(
        tmp_path / "run",
        "environment.info_metrics=[energy]",
        evaluations=[evaluation(t, t, [0.001]) | {"info": {"energy": [t]}} for t in (0, 1)],
    )
    assert cli.main(["report", "run"]) == 0
    page = Path("run/report.html").read_text()
    assert "<figcaption>energy of the greedy policy</figcaption>" in page
    assert '<td class="number">0.00100</td>' in page


def test_the_caption_names_the_filmed_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best policy of a running run may change while the process that films it starts."""
    directory, _ = trained_run(tmp_path / "run")
    assets = directory.best_policy / "assets.extra"
    assets.mkdir(parents=True)

    def find(train_step: int) -> None:
        write_best(directory.best_policy, BestRecord(train_step, EpisodeStatistics([1.0], [1])))

    def film(command: list[str], **settings: Any) -> subprocess.CompletedProcess[str]:
        """Films the newest best policy, as `actorlearner video` does."""
        find(2_000)
        chosen = command[command.index("--out") + 1] if "--out" in command else ""
        video = Path(chosen or directory.videos / "best-2000.mp4")
        video.parent.mkdir()
        video.write_bytes(b"film")
        return subprocess.CompletedProcess(command, 0)

    find(1_000)
    monkeypatch.setattr(subprocess, "run", film)
    video, caption = write_report.best_video(directory)
    assert video == directory.videos / "best-2000.mp4"
    assert caption == "policies/best, train step 2,000"
