"""A replay that cannot fit is refused before it serves, by the role and by local mode."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import Command

pytestmark = pytest.mark.integration

_SERVE = ("replay-server", "--port")

# Transitions of 160 kB.
_LARGE = """\
import gym
import numpy as np

class Large(gym.Env):
    observation_space = gym.spaces.Box(-1.0, 1.0, (20_000,))
    action_space = gym.spaces.Box(-1.0, 1.0, (1,))

    def reset(self):
        return np.zeros(20_000, np.float32)

    def step(self, action):
        return self.reset(), 0.0, False, {}
"""
_LARGE_CONFIG = """\
environment: {suite: "large:Large", name: ""}
agent: {name: sac, actor_layers: [4], critic_joint_layers: [4]}
replay:
  capacity: 10000000
"""


def refusal(command: Command) -> str:
    """The one line that it prints."""
    assert command.finish() == 2
    (line,) = command.err.splitlines()
    return line


@pytest.mark.parametrize(
    ("command", "names", "left"), [(_SERVE, "replay-server: ", True), (("local",), "", False)]
)
def test_a_capacity_that_does_not_fit_with_this_environment(
    start: Callable[..., Command],
    tmp_path: Path,
    free_port: int,
    command: tuple[str, ...],
    names: str,
    left: bool,
) -> None:
    """Only the replay server detects it; local mode leaves no run directory behind."""
    port = [str(free_port)] if command == _SERVE else []
    (tmp_path / "large.py").write_text(_LARGE)
    (tmp_path / "exp.yaml").write_text(_LARGE_CONFIG)
    refused = start("-m", "actorlearner", *command, *port, "--config", "exp.yaml", "--run_dir", "new/run")
    line = refusal(refused)
    assert line.startswith(f"actorlearner: error: {names}replay.capacity: 10000000 transitions may need ")
    assert " GiB is available (exp.yaml:4); allowed: at most " in line
    assert line.endswith(" with this environment on this machine")
    assert (tmp_path / "new").exists() is left
    if left:
        log = (tmp_path / "new" / "run" / "logs" / "replay-server.log").read_text()
        assert "serving on port" not in log
        assert not (tmp_path / "new" / "run" / "metrics").exists()
