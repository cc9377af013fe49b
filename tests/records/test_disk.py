"""Writing to a disk that is full, with a real one."""

import concurrent.futures
import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from actorlearner.records import disk
from actorlearner.records.disk import Appender, Outage, is_full, robust_stream, write_atomically
from tests.support.full_disk import fill, small_disk


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path, mebibytes=1) as path:
        yield path


@pytest.fixture
def calm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_CALM_S", 0.0)


def test_pieces_are_appended_whole_once_there_is_room(
    small: Path, calm: None, caplog: pytest.LogCaptureFixture
) -> None:
    path = small / "folder" / "lines"
    appender = Appender(path, "lines")
    assert appender.append(b"one\n")
    filler = fill(small)
    room = 4096 - 4  # In the page that the file has already.
    assert not appender.append(b"2" * room + b"\n")
    assert not appender.append(b"three\n")
    assert path.read_bytes() == b"one\n"
    assert not appender.flush()
    filler.unlink()
    assert appender.append(b"four\n")
    assert path.read_bytes() == b"one\n" + b"2" * room + b"\nthree\nfour\n"
    assert [record.getMessage() for record in caplog.records] == [
        f"the disk is full: the lines are not written to {path} for now, and the run continues",
        f"the lines are written to {path} again",
    ]


def test_a_file_is_begun_once_there_is_room(small: Path) -> None:
    filler = fill(small)
    appender = Appender(small / "folder" / "lines", "lines")
    assert not appender.append(b"one\n")
    filler.unlink()
    assert appender.flush()
    assert (small / "folder" / "lines").read_bytes() == b"one\n"


def test_the_newest_pieces_are_kept(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_KEPT_BYTES", 10)
    filler = fill(small)
    appender = Appender(small / "lines", "lines")
    for number in range(1, 7):
        appender.append(b"%03d\n" % number)
    filler.unlink()
    assert appender.flush()
    assert (small / "lines").read_bytes() == b"005\n006\n"


def test_errors_other_than_a_full_disk_are_raised(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        Appender(tmp_path, "lines").append(b"one\n")


def test_an_outage_is_over_only_when_nothing_fails_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = 100.0
    monkeypatch.setattr("actorlearner.records.disk.time.monotonic", lambda: now)
    outage = Outage("lines", tmp_path)
    outage.recovered()
    for _ in range(3):
        outage.failed(OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)))
        now += disk._CALM_S - 1.0
        outage.recovered()
    assert len(caplog.records) == 1
    now += 1.0
    outage.recovered()
    outage.recovered()
    assert len(caplog.records) == 2
    outage.failed(OSError("broken"))
    assert caplog.records[-1].getMessage().startswith("OSError: broken: the lines are not written")


def test_is_full_distinguishes_a_full_disk_from_other_errors() -> None:
    assert is_full(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert is_full(RuntimeError("writing x; No space left on device"))
    assert not is_full(OSError(errno.EIO, os.strerror(errno.EIO)))


def test_a_stream_goes_on_where_there_is_room_again(small: Path) -> None:
    path = small / "log"
    with path.open("ab") as file:
        stream = robust_stream(file.fileno())
        print("one", file=stream)
        filler = fill(small)
        for _ in range(3):
            print("x" * 5_000, file=stream)
        filler.unlink()
        print("two", file=stream)
        one, rest, *note, two = path.read_text().splitlines()
    assert (one, two) == ("one", "two")
    assert set(rest) == {"x"}
    assert note == [f"[{3 * 5_001 - len(rest)} bytes are missing: the disk was full]"]


def test_other_errors_of_a_stream_are_raised() -> None:
    reader, writer = os.pipe()
    os.close(writer)
    stream = robust_stream(reader)
    with pytest.raises(OSError, match="Bad file descriptor"):
        print("one", file=stream)
    os.close(reader)


_PRINTING = """
import logging
import sys
from pathlib import Path
from actorlearner.process.role_process import RoleProcess
from actorlearner.process.role_process import Verbosity
from actorlearner.records.run_directory import RunDirectory
process = RoleProcess("learner", RunDirectory(Path(sys.argv[1])), Verbosity.NORMAL)
print("printed")
logging.getLogger("actorlearner").warning("logged")
process.end(7, "ended", "as requested")
"""


def test_a_role_prints_logs_and_ends_with_its_log_on_a_full_disk(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "learner.log").symlink_to("/dev/full")
    command = [sys.executable, "-c", _PRINTING, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 7
    assert "Error" not in done.stderr
    assert done.stderr.count("logged") == 1  # On the terminal of the user who started it.


def test_output_to_a_closed_terminal_is_dropped() -> None:
    person, terminal = os.openpty()
    stream = robust_stream(terminal)
    print("seen", file=stream)
    assert os.read(person, 100) == b"seen\r\n"
    os.close(person)
    with pytest.raises(OSError, match="Input/output error"):
        os.write(terminal, b"raw")
    print("unseen", file=stream)
    os.close(terminal)


def test_two_atomic_writes_at_once_do_not_disturb_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads may do this, and two containers, whose processes can have the same id."""
    together = threading.Barrier(2)
    monkeypatch.setattr(disk.os, "fsync", lambda descriptor: together.wait(30))
    path, contents = tmp_path / "file", ["one" * 1_000, "other"]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(lambda content: write_atomically(path, content), contents))
    assert path.read_text() in contents
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_failed_atomic_write_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, "before")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "\ud800")
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
