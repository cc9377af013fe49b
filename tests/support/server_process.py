"""A replay server in a process of its own, whose memory can be measured and that can be saved."""

import contextlib
import multiprocessing
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import psutil

from actorlearner.config.schema import Config
from actorlearner.environments.specs import EnvironmentSpecs
from tests.support.ports import unused_port

_START_S = 60.0
_SAVE_S = 60.0


class ServerProcess:
    """A running replay server."""

    def __init__(self, pid: int, address: str, connection: Connection) -> None:
        self.pid = pid
        self.address = address
        self._process = psutil.Process(pid)
        self._connection = connection

    @property
    def data_bytes(self) -> int:
        """Its memory, including swapped pages and excluding mapped files, which the kernel can drop."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        fields = dict(line.split(":", 1) for line in lines)
        return sum(int(fields[name].split()[0]) for name in ("RssAnon", "VmSwap")) * 1024

    def save(self) -> None:
        self._connection.send("save")
        assert self._connection.poll(_SAVE_S), "the server did not save in time"
        assert self._connection.recv()


@contextlib.contextmanager
def replay_server(
    config: Config, specs: EnvironmentSpecs, directory: Path, port: int | None = None
) -> Iterator[ServerProcess]:
    """Serves the experience table on `port`, or on a free one; checkpoints are in `directory`."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["actorlearner.replay.experience_table"]
    )  # TensorFlow and Reverb, once for all servers.
    here, there = context.Pipe()
    port = port or unused_port()
    process = context.Process(target=_serve, args=(config, specs, directory, port, there), daemon=True)
    process.start()
    there.close()
    try:
        assert here.poll(_START_S), "the server did not start in time"
        assert here.recv() == "serving"
        assert process.pid is not None
        yield ServerProcess(process.pid, f"localhost:{port}", here)
    finally:
        here.close()
        process.join(10)
        process.kill()
        process.join()


def _serve(
    config: Config, specs: EnvironmentSpecs, directory: Path, port: int, connection: Connection
) -> None:
    import reverb

    from actorlearner.replay.checkpoints import ReplayCheckpoints
    from actorlearner.replay.connection import ReplayServer
    from actorlearner.replay.experience_table import experience_table
    from actorlearner.replay.layout import make_layout

    layout = make_layout(config, specs)
    checkpoints = ReplayCheckpoints(directory, config, layout)
    server = reverb.Server([experience_table(config, layout)], port, checkpoints.restoring_checkpointer())
    replay = ReplayServer(server.localhost_client(), layout)
    connection.send("serving")
    with contextlib.suppress(EOFError):
        while connection.recv() == "save":
            connection.send(checkpoints.save(replay))
    server.stop()
    sys.exit()
