"""Starts commands as real processes, and finds every process that they start."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from actorlearner.network.private_network import PrivateNetwork
from actorlearner.process.spawn import die_with_parent
from tests.support.warm import MARK_VARIABLE, WarmPopen
from tests.support.warm import REPOSITORY as REPOSITORY

# SAC or TD3 on Pendulum with tiny networks, for a run of a few seconds. TensorFlow traces and saves TD3 in a
# quarter of SAC's time, so tests use it where the algorithm does not matter.
TINY_RUN = (
    "replay.min_size=200",
    "collect.initial_random_steps=200",
    "learn.batch_size=64",
    "agent.actor_layers=[16]",
    "agent.critic_joint_layers=[16]",
    "evaluate.episodes=1",
)

_IMPORT_TENSORFLOW = {
    *("local", "replay-server", "collect-actor", "eval-actor", "learner"),
    *("doctor", "report", "rollout", "video"),
}
"""Commands that import TensorFlow, or whose child processes do."""

PATIENCE_S = 300.0
"""Seconds that tests wait. Roles need two minutes to start on an overloaded machine."""


def marked_processes(mark: str) -> list[int]:
    """Returns the ids of the processes with this mark in their environment."""
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # It has just ended, or belongs to another user.
    return found


def signal_role(mark: str, role: str, number: signal.Signals) -> None:
    """Waits for the process of a role of this session's local run, and sends it a signal."""

    def find() -> list[int]:
        found = []
        for pid in marked_processes(mark):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # It has just ended.
                if Path(f"/proc/{pid}/cmdline").read_text().startswith(f"{role} (actorlearner)"):
                    found.append(pid)
        return found

    (pid,) = wait_for(find, f"the process of the {role}")
    os.kill(pid, number)


def kill_role(mark: str, role: str) -> None:
    """Waits for the process of a role of this session's local run, and kills it."""
    signal_role(mark, role, signal.SIGKILL)


def run_script(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python code in a process without GPUs, where TensorFlow is imported and was not used before."""
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "-1"}
    process = WarmPopen(("-c", script, *arguments), REPOSITORY, environment, network=None)
    out, err = process.communicate(timeout=150)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def sleeper(writer: int) -> subprocess.Popen[bytes]:
    """Starts a process in a session of its own that only sleeps, in place of a role."""
    return subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True)


def wait_for(
    condition: Callable[[], Any], what: str, timeout_s: float = PATIENCE_S, interval_s: float = 0.05
) -> Any:
    """Polls until `condition` returns a true value, and returns it."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {timeout_s} s"
        time.sleep(interval_s)
    return value


def records(path: Path) -> list[dict[str, Any]]:
    """Returns the complete records of a metrics file; none while it does not exist."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[:-1]
    return [json.loads(line) for line in lines]


def status_of(run: Path) -> dict[str, Any]:
    """Returns what `actorlearner status` finds in a run directory."""
    command = [sys.executable, "-m", "actorlearner", "status", str(run), "--json"]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    status: dict[str, Any] = json.loads(completed.stdout)
    return status


def saved_train_step(run: Path) -> int:
    """Returns the train step of the learner's last checkpoint; 0 without one."""
    seals = (run / "checkpoints" / "learner").glob("ckpt-*.seal.json")
    return max((int(path.name.split(".")[0].removeprefix("ckpt-")) for path in seals), default=0)


class Command:
    """A running command of the package."""

    def __init__(
        self,
        arguments: tuple[str, ...],
        cwd: Path,
        environment: dict[str, str],
        network: PrivateNetwork | None = None,
        fresh: bool = False,
    ) -> None:
        """Starts it.

        Args:
          arguments: of the interpreter.
          cwd: its working directory.
          environment: all of its environment.
          network: the network of the command; None for the machine's own.
          fresh: whether a new interpreter imports everything, as for a user. By default, a command that
            imports TensorFlow is forked from a process that has it.
        """
        self.out = self.err = ""
        self.process: subprocess.Popen[str]
        if not fresh and arguments[:2] == ("-m", "actorlearner") and arguments[2] in _IMPORT_TENSORFLOW:
            self.process = WarmPopen(arguments, cwd, environment, network)
            return
        parent = os.getpid()

        def prepare() -> None:
            if network is not None:
                network.enter()
            # A test that hangs ends all of pytest, which then cannot end what it has started.
            die_with_parent(parent)
            # A shell ignores SIGINT in what it starts in the background, and children inherit that.
            signal.signal(signal.SIGINT, signal.SIG_DFL)

        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=prepare,
        )

    def finish(self, timeout_s: float = PATIENCE_S) -> int:
        """Waits for the end, stores the output, and returns the exit code."""
        self.out, self.err = self.process.communicate(timeout=timeout_s)
        return self.process.returncode

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> None:
        """Sends a signal to the whole process group, as the terminal does for Ctrl-C."""
        os.killpg(self.process.pid, number)

    def freeze(self) -> None:
        """Stops the process; blocks until all its threads have stopped."""
        self.process.send_signal(signal.SIGSTOP)
        options = os.WEXITED | os.WSTOPPED | os.WNOWAIT | os.WNOHANG
        found = wait_for(lambda: os.waitid(os.P_PID, self.process.pid, options), "the process to stop")
        assert found.si_code == os.CLD_STOPPED, f"it has ended: {found}"

    def thaw(self) -> None:
        """Continues a frozen process."""
        self.process.send_signal(signal.SIGCONT)
