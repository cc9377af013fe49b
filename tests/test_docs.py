"""The documentation: it builds, its links and paths exist, and it leaves nothing out."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY

DOCS = REPOSITORY / "docs"
PAGES = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
FOLDERS = ("actorlearner", "benchmarks", "configs", "docs", "examples", "launch", "tests")

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def test_it_builds_without_a_broken_link(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    build = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert build.returncode == 0, build.stderr
    configuration = (tmp_path / "configuration" / "index.html").read_text()
    for key in ("replay.updates_per_env_step", "agent.target_entropy", "agent.exploration_noise", "seed"):
        assert f"<code>{key}</code>" in configuration
    assert "--replay_address" in (tmp_path / "commands" / "index.html").read_text()


@pages
def test_links_to_files_of_the_repository_work(page: Path) -> None:
    """MkDocs checks the links between pages, but not those of README.md and CONTRIBUTING.md."""
    text = page.read_text()
    for target in re.findall(r'(?:\]\(|src=")([^)"#\s]+)', text):
        assert target.startswith("https://") or (page.parent / target).exists(), target


@pages
def test_paths_that_are_named_exist(page: Path) -> None:
    """As in `actorlearner/roles/learner.py` or, shorter, `roles/learner.py`; NAME stands for any name."""
    text = page.read_text()
    full = re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]+)`", text)
    short = re.findall(r"`(\w+/\w+\.py)`", text)
    for path in {*full, *short}:
        places = (REPOSITORY / path, REPOSITORY / "actorlearner" / path)
        assert any(place.exists() for place in places) or re.search("NAME|ENVIRONMENT", path), path


def test_every_command_has_its_help() -> None:
    command = [sys.executable, "-m", "actorlearner", "--help"]
    usage = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^    ([a-z]\S*)", usage.partition("\noptions:")[0], re.MULTILINE)
    shown = re.findall(r"<!-- help: (\S+) -->", (DOCS / "commands.md").read_text())
    assert len(commands) > 10
    assert sorted(shown) == sorted(commands)


def test_the_readme_is_short() -> None:
    assert len((REPOSITORY / "README.md").read_text().splitlines()) <= 230
