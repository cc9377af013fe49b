"""Whether a run's replay server can be reached from outside of the run."""

import re
from pathlib import Path

from tests.support import knock


def is_reachable(run: Path) -> bool:
    """Whether this process, which is not one of the run, can talk to its replay server."""
    (port,) = re.findall(r"serving run \w+ on port (\d+)", (run / "logs" / "replay-server.log").read_text())
    return knock.stock("127.0.0.1", int(port)) == "served"
