"""`tls`: what mutual TLS costs: batches of 256 through a gate and a door, beside the same in plain text."""

import contextlib
import multiprocessing
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from actorlearner.config.addresses import split_address
from actorlearner.network.certificate import make_certificate, write_certificate
from actorlearner.network.ports import LOOPBACK
from actorlearner.network.tls import open_doors, open_gate
from benchmarks import rounds, servers, threads
from benchmarks.filling import fill
from benchmarks.halfcheetah import configuration
from benchmarks.report import Row
from benchmarks.sampling import Sampler, our_batches


def run(env_steps: int = 20_000, turns: int = 5, calls: int = 200) -> tuple[list[Row], dict[str, Any]]:
    """Measures the rate and the CPU time of the sampling process, the door's thread included.

    Args:
      env_steps: in replay.
      turns: rounds.
      calls: graph calls in one round, of `learn.train_steps_per_call` batches each.
    """
    config = configuration()
    per_call = config.learn.train_steps_per_call
    settings = f"both: {per_call} batches a graph call, {threads.like_a_learner(config)}"
    details: dict[str, Any] = {}
    with servers.replay_server() as server, _door(server.address) as door:
        specs = fill(server, env_steps)
        plain = Sampler(*our_batches(config, specs, server.address), per_call, calls)
        tls = Sampler(*our_batches(config, specs, door), per_call, calls)
        values = rounds.medians({"plain": plain.rate, "tls": tls.rate}, turns, details)
    details |= {"plain_cpu_ms_a_batch": plain.cpu_ms, "tls_cpu_ms_a_batch": tls.cpu_ms}
    middle = turns // 2
    cpu, plain_cpu = sorted(tls.cpu_ms)[middle], sorted(plain.cpu_ms)[middle]
    rate = "batches of 256 a second by TLS, beside plain text; ratio"
    client = "CPU ms a batch in the client by TLS, beside plain text; decoding included"
    return [
        Row(
            "tls",
            rate,
            values["plain"],
            values["tls"],
            rounds.ratio(details, "tls", "plain"),
            None,
            True,
            settings,
        ),
        Row("tls", client, plain_cpu, cpu, cpu, None, False, settings),
    ], details


@contextlib.contextmanager
def _door(address: str) -> Iterator[str]:
    """A door of this process to a gate before a server, which is in a process of its own."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server((LOOPBACK, 0)) as listener:
        certificate = Path(folder) / "run.pem"
        write_certificate(certificate, make_certificate())
        _, port = split_address(address)
        gate = multiprocessing.get_context("spawn").Process(
            target=_serve, args=(listener, port, certificate), daemon=True
        )
        gate.start()
        yield open_doors([f"{LOOPBACK}:{listener.getsockname()[1]}"], certificate)[0]
        gate.kill()
        gate.join()


def _serve(listener: socket.socket, port: int, certificate: Path) -> None:
    open_gate(listener, port, certificate)
    signal.pause()
