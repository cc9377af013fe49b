"""Makes every check and prints a line for each."""

import tempfile
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from actorlearner.config.schema import Config
from actorlearner.errors import EXIT_FAILED, EXIT_FINISHED
from actorlearner.inspect.doctor.check import Check, CheckedExperiment, Result, Status, fail
from actorlearner.inspect.doctor.experiment import check_agent, check_disk, check_environment, check_memory
from actorlearner.inspect.doctor.machine import (
    check_gpus,
    check_libraries,
    check_network,
    check_platform,
    check_precision,
    check_versions,
)
from actorlearner.inspect.doctor.round_trip import check_round_trip
from actorlearner.inspect.doctor.worker import Worker
from actorlearner.process.stop import exit_at_sigterm
from actorlearner.records.run_directory import NEW_RUNS

_WIDTH = 80

CHECKS = (
    Check("platform", check_platform, "use Linux on x86-64"),
    Check("versions", check_versions, "make setup"),
    Check("libraries", check_libraries, "make setup, for packages that fit each other"),
    Check("gpus", check_gpus, "check the output of nvidia-smi", needs=("libraries",)),
    Check("precision", check_precision, "set learn.precision to float32", needs=("libraries",)),
    Check("network", check_network, "set the loopback interface up"),
    Check("environment", check_environment, "make and step it by itself", needs=("libraries",)),
    Check("agent", check_agent, "choose another agent.name", needs=("environment",)),
    Check("memory", check_memory, "free memory of this machine", needs=("environment",)),
    Check("disk", check_disk, "choose another --run_dir", needs=("agent",)),
    Check(
        "replay",
        check_round_trip,
        "unset http_proxy, and check what filters connections of this machine to itself",
        needs=("environment", "network"),
    ),
)


def run_doctor(config: Config, run_dir: str | None) -> int:
    """Checks whether this machine can train an experiment, and prints a line for each check.

    Args:
      config: the experiment.
      run_dir: the run directory; None for a new directory under runs/.

    Returns:
      The exit code: 1 if a check failed.
    """
    exit_at_sigterm()
    experiment = CheckedExperiment(config, Path(run_dir or NEW_RUNS).absolute())
    failed = False
    with tempfile.TemporaryDirectory(prefix="actorlearner-", ignore_cleanup_errors=True) as temporary:
        worker = Worker(experiment, temporary)
        try:
            for check, result in examine(CHECKS, worker.make):
                print(line(check.name, result), flush=True)
                failed = failed or result.status is Status.FAIL
        finally:
            worker.close()
    return EXIT_FAILED if failed else EXIT_FINISHED


def examine(checks: Iterable[Check], make: Callable[[Check], Result]) -> Iterator[tuple[Check, Result]]:
    """Yields each check with its result; a check that needs a failed check is not made, and fails."""
    failed: set[str] = set()
    for check in checks:
        missing = [name for name in check.needs if name in failed]
        result = fail(f"not checked: repair {' and '.join(missing)} first") if missing else make(check)
        if result.status is Status.FAIL:
            failed.add(check.name)
        yield check, result


def line(name: str, result: Result) -> str:
    """Returns the line of a check, wrapped and indented below its detail."""
    start = f"{result.status.value:<4} {name:<11} "
    detail = " ".join(result.detail.split())
    return textwrap.fill(start + detail, _WIDTH, subsequent_indent=" " * len(start), break_on_hyphens=False)
