"""`tls`: the cost of mutual TLS to a learner and an actor: a tunnel and a proxy, beside plain text."""

import contextlib
import functools
import multiprocessing
import signal
import socket
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from actorlearner.config.addresses import split_address
from actorlearner.network.certificate import make_certificate, write_certificate
from actorlearner.network.ports import LOOPBACK
from actorlearner.network.tls import open_proxy, open_tunnels
from benchmarks.actor import collector
from benchmarks.sampling import Sampler, our_batches
from benchmarks.support import rounds, servers, threads
from benchmarks.support.filling import fill
from benchmarks.support.halfcheetah import configuration
from benchmarks.support.report import Row

_ENVIRONMENTS = 8


def run(
    env_steps: int = 20_000, turns: int = 5, calls: int = 200, acting_turns: int = 15, round_s: float = 1.0
) -> tuple[list[Row], dict[str, Any]]:
    """Measures batches of 256 and their CPU time in the sampling process, and env steps of a collect actor.

    The tunnel's thread is part of both.

    Args:
      env_steps: in replay.
      turns: rounds of sampling.
      calls: graph calls in one round, of `learn.train_steps_per_call` batches each.
      acting_turns: rounds of acting.
      round_s: seconds of acting in one round.
    """
    config = configuration()
    per_call = config.learn.train_steps_per_call
    settings = f"both: {per_call} batches a graph call, {threads.like_a_learner(config)}"
    with servers.replay_server() as server, _tunnel(server.address) as tunnel:
        specs = fill(server, env_steps)
        plain = Sampler(*our_batches(config, specs, server.address), per_call, calls)
        tls = Sampler(*our_batches(config, specs, tunnel), per_call, calls)
        rates = rounds.in_turn({"plain": plain.rate, "tls": tls.rate}, turns)
        with tempfile.TemporaryDirectory() as directory:
            acting = {
                f"{name} actor": functools.partial(
                    rounds.rate,
                    collector(config, _ENVIRONMENTS, address, Path(directory) / name),
                    round_s,
                    _ENVIRONMENTS,
                )
                for name, address in (("plain", server.address), ("tls", tunnel))
            }
            rates |= rounds.in_turn(acting, acting_turns)
    cpu, plain_cpu = statistics.median(tls.cpu_ms), statistics.median(plain.cpu_ms)
    rate = "batches of 256 a second by TLS, beside plain text; ratio"
    client = "CPU ms a batch in the client by TLS, beside plain text; decoding included"
    acting_rate = (
        f"env steps a second of an actor with {_ENVIRONMENTS} HalfCheetahs by TLS; ratio to plain text"
    )
    return [
        Row("tls", rate, *rounds.compared(rates, "tls", "plain"), None, True, settings),
        Row("tls", client, plain_cpu, cpu, cpu, None, False, settings),
        Row("tls", acting_rate, *rounds.compared(rates, "tls actor", "plain actor"), None, True, settings),
    ], {**rates, "plain_cpu_ms_a_batch": plain.cpu_ms, "tls_cpu_ms_a_batch": tls.cpu_ms}


@contextlib.contextmanager
def _tunnel(address: str) -> Iterator[str]:
    """Context manager; yields the address of a tunnel to a proxy, another process, in front of a server."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server((LOOPBACK, 0)) as listener:
        certificate = Path(folder) / "run.pem"
        write_certificate(certificate, make_certificate())
        _, port = split_address(address)
        proxy = multiprocessing.get_context("spawn").Process(
            target=_serve, args=(listener, port, certificate), daemon=True
        )
        proxy.start()
        yield open_tunnels([f"{LOOPBACK}:{listener.getsockname()[1]}"], certificate)[0]
        proxy.kill()
        proxy.join()


def _serve(listener: socket.socket, port: int, certificate: Path) -> None:
    open_proxy(listener, port, certificate)
    signal.pause()
