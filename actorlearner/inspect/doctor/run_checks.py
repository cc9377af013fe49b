"""The command: makes every check and prints a line for each."""

import signal
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType

from actorlearner.config.schema import Config
from actorlearner.errors import EXIT_FAILED, EXIT_FINISHED, EXIT_TERMINATED
from actorlearner.inspect.doctor.checks import CHECKS, Check
from actorlearner.inspect.doctor.result import Result, Status, fail
from actorlearner.inspect.doctor.subject import Subject
from actorlearner.inspect.doctor.worker import Worker

_WIDTH = 80
_RUNS = "runs"


def run_doctor(config: Config, run_dir: str | None) -> int:
    """Checks whether this machine can train, and says what is missing.

    Args:
      config: what is to be trained.
      run_dir: where it is to be written; None for a new directory under runs/.

    Returns:
      The exit code: 1 if a check has failed.
    """
    signal.signal(signal.SIGTERM, _terminate)
    subject = Subject(config, Path(run_dir or _RUNS).absolute())
    failed = False
    with tempfile.TemporaryDirectory(prefix="actorlearner-", ignore_cleanup_errors=True) as temporary:
        worker = Worker(subject, temporary)
        try:
            for check, result in examine(CHECKS, worker.make):
                print(line(check.name, result), flush=True)
                failed = failed or result.status is Status.FAIL
        finally:
            worker.close()
    return EXIT_FAILED if failed else EXIT_FINISHED


def examine(checks: Iterable[Check], make: Callable[[Check], Result]) -> Iterator[tuple[Check, Result]]:
    """Makes the checks in turn, but for those that need one that has failed."""
    failed: set[str] = set()
    for check in checks:
        missing = [name for name in check.needs if name in failed]
        result = fail(f"not checked: repair {' and '.join(missing)} first") if missing else make(check)
        if result.status is Status.FAIL:
            failed.add(check.name)
        yield check, result


def line(name: str, result: Result) -> str:
    """A check's line; a long one is continued below its detail."""
    start = f"{result.status.value:<4} {name:<11} "
    detail = " ".join(result.detail.split())
    return textwrap.fill(start + detail, _WIDTH, subsequent_indent=" " * len(start), break_on_hyphens=False)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise SystemExit(EXIT_TERMINATED)
