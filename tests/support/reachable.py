"""Whether a run's replay server can be reached from outside of the run."""

import re
from pathlib import Path

import reverb

from actorlearner.replay.reverb_calls import UNREACHABLE


def is_reachable(run: Path) -> bool:
    """Whether this process, which is not one of the run, can talk to its replay server."""
    (port,) = re.findall(r"serving run \w+ on port (\d+)", (run / "logs" / "replay-server.log").read_text())
    try:
        reverb.Client(f"127.0.0.1:{port}").server_info(timeout=2)
    except UNREACHABLE:
        return False
    return True
