"""Shell completion in a real bash: the printed script and the program that it calls."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from actorlearner.cli import main as cli
from actorlearner.cli.completion import SHELLS


@pytest.fixture(name="bin_directory")
def _bin_directory(tmp_path: Path) -> Path:
    """A directory with `actorlearner` in it."""
    directory = tmp_path / "bin"
    directory.mkdir()
    program = directory / "actorlearner"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nfrom actorlearner.cli.main import main\nsys.exit(main())\n"
    )
    program.chmod(0o755)
    return directory


def complete(bin_directory: Path, folder: Path, lines: Iterable[str]) -> list[list[str]]:
    """Bash's completions of the last word of each line."""
    code = 'eval "$(actorlearner completion bash)"\n'
    for line in lines:
        words = line.split(" ")
        code += f"""
            COMP_LINE={line!r} COMP_POINT={len(line)} COMP_TYPE=9 COMP_CWORD={len(words) - 1}
            COMP_WORDS=({" ".join(map(repr, words))})
            _python_argcomplete actorlearner {words[-1]!r} {words[-2]!r}
            echo "${{COMPREPLY[@]}}"
        """
    environment = os.environ | {"PATH": f"{bin_directory}:{os.environ['PATH']}"}
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, "--norc", "-c", code],
        env=environment | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return [sorted(offered.split()) for offered in done.stdout.splitlines()]


def test_bash_offers(bin_directory: Path, tmp_path: Path) -> None:
    (tmp_path / "my.yaml").touch()
    offers = {
        "actorlearner le": ["learner"],
        "actorlearner local --conf": ["--config"],
        "actorlearner local --config sac_p": ["sac_pendulum"],
        "actorlearner local --config my": ["my.yaml"],
        "actorlearner local --config my.yaml --set learn.batch": ["learn.batch_size="],
        "actorlearner config --explain agent.initial": ["agent.initial_alpha", "agent.initial_std"],
        "actorlearner completion f": ["fish"],
    }
    assert complete(bin_directory, tmp_path, offers) == list(offers.values())


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_has_a_script(capfd: pytest.CaptureFixture[str], shell: str) -> None:
    assert cli.main(["completion", shell]) == 0
    assert "actorlearner" in capfd.readouterr().out


def test_another_shell_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", "csh"]) == 2
    line = "SHELL: 'csh' cannot be used; allowed: bash, zsh or fish"
    assert capfd.readouterr().err == f"actorlearner: error: {line}\n"
