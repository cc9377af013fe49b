"""A replay server in a process of its own, with the tables of every layout."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Sequence

import psutil
import reverb

from actorlearner.agents.make import make_agent
from actorlearner.environments.specs import load_specs
from actorlearner.network.ports import free_port
from actorlearner.process.tensorflow_setup import limit_tensorflow
from actorlearner.replay.experience_table import experience_table
from actorlearner.replay.layout import make_layout
from actorlearner.variables.container import variable_tables
from benchmarks.support.halfcheetah import NAME, configuration

_SERVING = "serving\n"


@contextlib.contextmanager
def replay_server(environment: str = NAME) -> Iterator["ServerProcess"]:
    """Starts a server of the experiment on a pybullet environment; ends it on leaving."""
    with serving("benchmarks.support.servers", environment) as server:
        yield server


@contextlib.contextmanager
def serving(module: str, *arguments: str) -> Iterator["ServerProcess"]:
    """Runs `python -m MODULE PORT ARGUMENTS`, which calls `serve`; ends it on leaving.

    Blocks until the process serves; Reverb and TensorFlow take some seconds.
    """
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", module, str(port), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        if _SERVING not in process.stdout:  # pybullet prints lines of its own before.
            raise RuntimeError(f"the replay server of {module} did not start")
        yield ServerProcess(process.pid, f"localhost:{port}")
    finally:
        process.communicate(timeout=30)  # Closes its standard input, at which it ends.


def serve(tables: Sequence[reverb.Table], port: int) -> None:
    """Serves the tables on `port` until standard input is closed."""
    server = reverb.Server(tables, port)
    print(_SERVING, end="", flush=True)
    sys.stdin.read()
    server.stop()


class ServerProcess(psutil.Process):
    """A running replay server."""

    def __init__(self, pid: int, address: str) -> None:
        """Knows it by its process and its address."""
        super().__init__(pid)
        self.address = address


def cpu_s(process: psutil.Process) -> float:
    """Returns the CPU seconds that a process has used."""
    times = process.cpu_times()
    return float(times.user + times.system)


def experience_and_variables(environment: str) -> list[reverb.Table]:
    """Makes the experience tables of both layouts, and the variable container."""
    tables = []
    for layout in ("packed", "trajectory"):
        config = configuration(layout, environment)
        specs = load_specs(config.environment)
        tables.append(experience_table(config, make_layout(config, specs)))
    return [*tables, *variable_tables(make_agent(config, specs).policy_variables)]


if __name__ == "__main__":
    limit_tensorflow(threads=1)
    serve(experience_and_variables(sys.argv[2]), port=int(sys.argv[1]))
