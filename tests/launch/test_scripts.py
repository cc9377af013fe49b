"""The launch scripts are the commands of the same name."""

import runpy
import sys

import pytest

from actorlearner.cli import main as cli
from tests.support.processes import REPOSITORY


@pytest.mark.parametrize("command", ["replay-server", "collect-actor", "eval-actor", "learner", "local"])
def test_a_script_is_its_command(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = str(REPOSITORY / "launch" / f"{command.replace('-', '_')}.py")
    monkeypatch.setattr(cli, "main", lambda arguments: arguments)
    monkeypatch.setattr(sys, "argv", [script, "--config", "c"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(script, run_name="__main__")
    assert ended.value.code == [command, "--config", "c"]
