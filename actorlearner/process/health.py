"""The command: says how roles are, a line for each process."""

from collections.abc import Sequence
from pathlib import Path

from actorlearner.errors import EXIT_FAILED, EXIT_FINISHED
from actorlearner.process.health_check import check
from actorlearner.records.run_directory import RunDirectory


def run_health(roles: Sequence[str], run_dir: str, replay_address: str | None) -> int:
    """Says whether roles are healthy; takes seconds at most.

    Args:
      roles: which.
      run_dir: theirs.
      replay_address: where the replay server has to answer, if it is one of them; None asks nobody.

    Returns:
      The exit code: 1 if one is not healthy.
    """
    found = check(roles, RunDirectory(Path(run_dir)), replay_address)
    for health in found:
        print(f"{health.name}: {'healthy' if health.healthy else 'NOT HEALTHY'}: {health.why}")
    return EXIT_FINISHED if all(health.healthy for health in found) else EXIT_FAILED
