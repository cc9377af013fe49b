"""Starting commands as real processes, and finding every process that they started."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from actorlearner.local.private_network import PrivateNetwork
from actorlearner.process.die_with import die_with
from tests.support.warm import MARK_VARIABLE, WarmPopen
from tests.support.warm import REPOSITORY as REPOSITORY

# SAC or TD3 on Pendulum with tiny networks: all that a run of a few seconds needs. TensorFlow traces and
# saves TD3 in a quarter of the time, so tests take it where the algorithm does not matter.
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
"""Commands that do so, or that start processes which do."""

PATIENCE_S = 300.0
"""How long is waited for what has to come. Roles need two minutes to start on a machine that has
far too much to do."""


def marked_processes(mark: str) -> list[int]:
    """The processes that were started with the environment variable of this test session."""
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # It ended while we looked, or is none of ours.
    return found


def kill_role(mark: str, role: str) -> None:
    """Kills the process of a role that a local run of this test session has, once there is one."""

    def find() -> list[int]:
        titles = {pid: Path(f"/proc/{pid}/cmdline").read_text() for pid in marked_processes(mark)}
        return [pid for pid, title in titles.items() if title.startswith(f"{role} (actorlearner)")]

    (pid,) = wait_for(find, f"the process of the {role}")
    os.kill(pid, signal.SIGKILL)


def sleeper(writer: int) -> subprocess.Popen[bytes]:
    """A process in a session of its own that only waits, in place of a role, which takes seconds."""
    return subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True)


def wait_for(
    condition: Callable[[], Any], what: str, timeout_s: float = PATIENCE_S, interval_s: float = 0.05
) -> Any:
    """Polls until `condition` returns something true, and returns that."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {timeout_s} s"
        time.sleep(interval_s)
    return value


def records(path: Path) -> list[dict[str, Any]]:
    """The whole records of a metrics file; none while it does not exist."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[:-1]
    return [json.loads(line) for line in lines]


def saved_train_step(run: Path) -> int:
    """The train step of the learner's last checkpoint; 0 while there is none."""
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
          network: that it is to be in; None for the machine's own.
          fresh: whether a new interpreter imports everything, as for a user. By default, a command that
            imports TensorFlow is forked from a process that has it.
        """
        self.out = self.err = ""
        self.process: subprocess.Popen[str]
        if not fresh and arguments[:2] == ("-m", "actorlearner") and arguments[2] in _IMPORT_TENSORFLOW:
            self.process = WarmPopen(arguments[2:], cwd, environment, network)
            return
        parent = os.getpid()

        def prepare() -> None:
            if network is not None:
                network.enter()
            die_with(
                parent
            )  # A test that hangs ends all of pytest, which then cannot end what it had started.

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
        """Waits for the end; keeps what was printed; returns the exit code."""
        self.out, self.err = self.process.communicate(timeout=timeout_s)
        return self.process.returncode

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> None:
        """Sends a signal to the whole process group, as the terminal does for Ctrl-C."""
        os.killpg(self.process.pid, number)

    def freeze(self) -> None:
        """Stops the process; returns when all its threads stand still, some of which run on for a while."""
        self.process.send_signal(signal.SIGSTOP)
        options = os.WEXITED | os.WSTOPPED | os.WNOWAIT | os.WNOHANG
        found = wait_for(lambda: os.waitid(os.P_PID, self.process.pid, options), "the process to stand still")
        assert found.si_code == os.CLD_STOPPED, f"it has ended: {found}"

    def thaw(self) -> None:
        """Lets a frozen process go on."""
        self.process.send_signal(signal.SIGCONT)
