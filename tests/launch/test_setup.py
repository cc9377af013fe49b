"""The set-up of .venv: which packages it installs, when, and that their hashes are checked."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY

_USER, _DEV = "requirements.lock", "requirements-dev.lock"
_PYTHON = f"""#!/bin/sh
case "$*" in
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  "-m pip --version") ;;
  "-m pip "*) echo "$*" >>installed && touch .venv/bin/actorlearner && chmod +x .venv/bin/actorlearner ;;
  *"import reverb"* | *importlib.metadata*) ;;
  *) exec {sys.executable} "$@" ;;
esac
"""
"""An interpreter that makes environments and installs packages in name only."""

SetUp = Callable[..., list[str]]


@pytest.fixture(name="set_up")
def _set_up(tmp_path: Path) -> SetUp:
    """Calls setup.sh in an empty checkout; returns the lock files that it installed from."""
    (tmp_path / "launch").mkdir()
    shutil.copy(REPOSITORY / "launch" / "setup.sh", tmp_path / "launch")
    for name in (_USER, _DEV, "pyproject.toml"):
        shutil.copy(REPOSITORY / name, tmp_path)
    (tmp_path / "python").write_text(_PYTHON)
    (tmp_path / "python").chmod(0o755)

    def set_up(*arguments: str) -> list[str]:
        log = tmp_path / "installed"
        log.write_text("")
        done = subprocess.run(
            ["bash", "launch/setup.sh", *arguments],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "PYTHON": str(tmp_path / "python")},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return re.findall(r"--require-hashes -r (\S+)", log.read_text())

    return set_up


def test_developers_tools_are_added_when_they_are_needed(set_up: SetUp) -> None:
    assert set_up() == [_USER]
    assert set_up() == []
    assert set_up(_DEV) == [_DEV]
    assert set_up() == set_up(_DEV) == []


def test_an_environment_keeps_the_developers_tools(set_up: SetUp, tmp_path: Path) -> None:
    assert set_up(_DEV) == [_DEV]
    with (tmp_path / _USER).open("a") as lock:
        lock.write("# changed\n")
    assert set_up() == [_DEV]
    assert set_up() == set_up(_DEV) == []


@pytest.mark.parametrize(
    ("target", "lock"),
    [("train", []), *((target, [_DEV]) for target in ("setup", "test", "lint", "types", "lock"))],
)
def test_training_needs_no_developers_tools(target: str, lock: list[str]) -> None:
    commands = subprocess.run(
        ["make", "--dry-run", target], cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=True
    ).stdout
    [called] = re.findall(r"launch/setup\.sh(.*)", commands)
    assert called.split() == lock


def _pins(name: str) -> dict[str, str]:
    """The version of each package of a lock file, all of which have hashes."""
    text = re.sub(r"(?m)^ *#.*\n", "", (REPOSITORY / name).read_text()).replace("\\\n", "")
    pins = {}
    for line in text.splitlines():
        match = re.fullmatch(r"([\w.-]+)==(\S+)(?: +--hash=sha256:[0-9a-f]{64})+ *", line)
        assert match, line
        pins[match[1]] = match[2]
    return pins


def test_lock_files_have_hashes_and_agree() -> None:
    user, dev = _pins(_USER), _pins(_DEV)
    assert user.items() <= dev.items()
    assert {"tensorflow", "dm-reverb", "hatchling", "editables"} <= user.keys()
    assert {"pytest", "mypy", "ruff", "pip-tools", "wandb"} <= dev.keys() - user.keys()
    assert "://" not in (REPOSITORY / _USER).read_text() + (REPOSITORY / _DEV).read_text()
