"""A replay that cannot fit is refused before it serves, by the role and by local mode."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY, Command

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

_PENDULUM = str(REPOSITORY / "configs" / "sac_pendulum.yaml")


@pytest.mark.parametrize(
    ("command", "names"), [(["replay-server", "--port"], "replay-server: "), (["local"], "")]
)
@pytest.mark.parametrize("layout", ["packed", "trajectory"])
def test_a_capacity_beyond_all_memory(
    start: Callable[..., Command],
    tmp_path: Path,
    free_port: int,
    command: list[str],
    names: str,
    layout: str,
) -> None:
    port = [str(free_port)] if command[-1] == "--port" else []
    refused = start(
        *("-m", "actorlearner", *command, *port, "--config", _PENDULUM, "--run_dir", "run"),
        *("--set", "replay.capacity=100000000000", f"replay.layout={layout}"),
    )
    assert refused.finish() == 2
    expected = f"actorlearner: error: {names}replay.capacity: 100000000000 transitions may need "
    (line,) = [line for line in refused.err.splitlines() if "error:" in line]
    assert line.startswith(expected)
    assert " GiB is available; allowed: at most " in line
    assert "Traceback" not in refused.err
    log = (tmp_path / "run" / "logs" / "replay-server.log").read_text()
    assert "serving on port" not in log
    assert not (tmp_path / "run" / "metrics" / "replay.jsonl").exists()
