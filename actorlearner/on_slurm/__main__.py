"""Does the work of one of a run's two Slurm jobs, which main.sbatch and collect.sbatch start.

  python -m actorlearner.on_slurm main RUN_DIR ARGUMENTS...
  python -m actorlearner.on_slurm collect MAIN_JOB ACTORS ARGUMENTS...

ARGUMENTS are passed to every role. Slurm sends SIGUSR1 before the time limit: the roles save and end, and the
job is requeued. SIGTERM, from scancel or a preemption, only ends the roles: Slurm decides whether it requeues
the job.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from actorlearner.errors import EXIT_USAGE
from actorlearner.network.certificate import CERTIFICATE_VARIABLE, write_certificate
from actorlearner.on_slurm import signals
from actorlearner.on_slurm.collect_job import collect_job
from actorlearner.on_slurm.main_job import main_job
from actorlearner.on_slurm.slurm_commands import log


def main(arguments: Sequence[str]) -> int:
    """Does the work of one job; returns its exit code."""
    signals.block()
    # Not left in the environment, which all processes of the roles would inherit.
    certificate = os.environ.pop(CERTIFICATE_VARIABLE, "")
    if not certificate:
        log(
            f"{CERTIFICATE_VARIABLE} is not set; allowed: jobs of submit.py, without --export=NONE for sbatch"
        )
        return EXIT_USAGE
    which, first, *rest = arguments
    with tempfile.TemporaryDirectory(prefix="actorlearner-") as folder:  # Of this node, for this user only.
        file = Path(folder, "run.pem")
        write_certificate(file, certificate.encode())
        tls = ("--tls", str(file))
        if which == "main":
            return main_job(first, [*rest, *tls])
        actors, *rest = rest
        return collect_job(first, int(actors), [*rest, *tls])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
