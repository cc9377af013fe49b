"""Fakes of Slurm's commands."""

import os
from pathlib import Path

import pytest

# The id of a step is its process id. `job` is what scontrol shows, ROLE is what a role does. A call is noted
# once `job` was read: a test that has seen the call may replace the file.
_FAKE = """#!/bin/bash
cd "$FAKE" && job=$(cat job 2>&-)
name=${0##*/} && echo "$name $*" >>calls
case "$name $*" in
  "scontrol --oneliner show job "*)
    [[ $job ]] && echo "$job" && exit
    echo "slurm_load_jobs error: Invalid job id specified" >&2
    exit 1 ;;
  "scontrol requeue "*) [[ ! -e forbidden ]] || { echo "Requested operation is disabled" >&2; exit 1; } ;;
  "squeue "*) for step in steps/*; do echo "$(<"$step") ${step#steps/}"; done ;;
  "scancel --signal="*) kill "-${1#--signal=}" "$2" ;;
  "sbatch "*)
    printf '%s' "$ACTORLEARNER_CERTIFICATE" >"certificate-$(grep -c ^sbatch calls)"
    [[ ! -e full || $(grep -c ^sbatch calls) == 1 ]] || { echo "sbatch: error: queue full" >&2; exit 1; }
    echo "$((40 + $(grep -c ^sbatch calls)));cluster" ;;
  "srun "*)
    role=$(grep -o -- '--job-name=[^ ]*' <<<"$*" | cut -d= -f2)
    trap 'rm "steps/$role"' EXIT
    trap 'exit 143' TERM
    echo $$ >"$role.step" && mv "$role.step" "steps/$role"
    source "./$role" ;;
esac
"""
RUNNING = (
    "JobId=7 JobName=x JobState=RUNNING Restarts=1 EndTime=Unknown Comment=actorlearner:1:node3:4242 Power=\n"
)


class FakeSlurm:
    """Slurm's commands as scripts in a folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Puts them first on PATH; a job runs, and its replay server has an address."""
        self.folder = folder
        (folder / "steps").mkdir()
        (folder / "bin").mkdir()
        for name in ("scontrol", "squeue", "scancel", "sbatch", "srun"):
            (folder / "bin" / name).write_text(_FAKE)
            (folder / "bin" / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
        monkeypatch.setenv("FAKE", str(folder))
        self.write("job", RUNNING)

    def write(self, name: str, text: str) -> None:
        """Replaces a file at once: a fake may be reading it."""
        (self.folder / "new").write_text(text)
        (self.folder / "new").rename(self.folder / name)

    def calls(self, start: str = "") -> list[str]:
        path = self.folder / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if line.startswith(start)]
