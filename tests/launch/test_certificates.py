"""The certificates of a run: whom they vouch for, who can read them, and what is refused."""

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY

_SCRIPT = REPOSITORY / "launch" / "certificates.sh"
_USER = 10001  # Of launch/Dockerfile.

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("openssl"), reason="needs root, and openssl"
)


def _make(*arguments: str) -> tuple[int, str, str]:
    done = subprocess.run([str(_SCRIPT), *arguments], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def _verified(certificate: Path, authority: Path, purpose: str) -> bool:
    command = ["openssl", "verify", "-purpose", purpose, "-CAfile", str(authority), str(certificate)]
    return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0


def test_what_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "certificates"
    code, out, err = _make(str(folder))
    assert (code, err) == (0, "")
    line = rf"certificates.sh: made {folder}/server and {folder}/client, good until \d{{4}}-\d\d-\d\d\n"
    assert re.fullmatch(line, out)
    assert list(tmp_path.iterdir()) == [folder]  # Neither the authority's key nor anything else is left.
    assert {path.name for path in folder.iterdir()} == {"server", "client"}
    for side in folder.iterdir():
        assert {path.name for path in side.iterdir()} == {"ca.crt", "own.crt", "own.key"}
        assert (stat.S_IMODE(side.stat().st_mode), side.stat().st_uid) == (0o700, _USER)
        for path in side.iterdir():
            assert (stat.S_IMODE(path.stat().st_mode), path.stat().st_uid) == (0o400, _USER)
        other = {"server": "client", "client": "server"}[side.name]
        authority = folder / other / "ca.crt"
        assert _verified(side / "own.crt", authority, f"ssl{side.name}")
        assert not _verified(side / "own.crt", authority, f"ssl{other}")


def test_a_folder_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    for taken in (there, tmp_path / "link"):
        message = f"certificates.sh: {taken} is there already; it is left as it is\n"
        assert _make(str(taken)) == (1, "", message)
    assert not list(there.iterdir())
    assert {path.name for path in tmp_path.iterdir()} == {"there", "link"}


@pytest.mark.parametrize("arguments", [[], [""], ["--help"], ["a", "b"]])
def test_bad_usage(arguments: list[str]) -> None:
    assert _make(*arguments) == (2, "", "usage: certificates.sh DIR\n")


def test_a_folder_in_no_folder_is_refused(tmp_path: Path) -> None:
    message = f"certificates.sh: {tmp_path}/no is no folder\n"
    assert _make(str(tmp_path / "no" / "certificates")) == (1, "", message)
