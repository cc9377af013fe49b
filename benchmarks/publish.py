"""`publish`: what publishing the policy variables to listening actors costs the learner."""

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import reverb

from actorlearner.learning.publisher import Publisher
from actorlearner.machine.devices import share_cpus
from benchmarks import rounds
from benchmarks.filling import fill
from benchmarks.halfcheetah import configuration
from benchmarks.learner import Training, fixed_batch, training
from benchmarks.report import Row
from benchmarks.servers import replay_server

_ACTORS = 4
_INTERVAL = 100
# Short rounds in turn: the machine's speed changes from one second to the next.
_ROUNDS = 41
_CALLS = 3
"""Of _INTERVAL train steps each, in one measurement."""


def run() -> tuple[list[Row], dict[str, Any]]:
    """Measures in turn with and without publishing; the actors listen all the while."""
    details: dict[str, Any] = {}
    config = configuration()
    share_cpus(config.learn.intra_op_threads)
    with replay_server() as server, tempfile.TemporaryDirectory() as directory:
        specs = fill(server, env_steps=4_000)
        learner = training(config, specs, Path(directory), lambda: fixed_batch(config, specs, server.address))
        publisher = Publisher(reverb.Client(server.address), learner.parts)
        with _listening_actors(server.address, config.collect.variables_interval_s):
            values = rounds.medians(
                {
                    "without": lambda: _rate(learner, None),
                    "publishing": lambda: _rate(learner, publisher),
                },
                _ROUNDS,
                details,
            )
    ratio = rounds.ratio(details, "publishing", "without")
    what = f"train steps a second, publishing every {_INTERVAL} to {_ACTORS} actors; ratio to not publishing"
    return [Row("publish", what, values["without"], values["publishing"], ratio, 0.99, True)], details


def _rate(learner: Training, publisher: Publisher | None) -> float:
    import time

    began = time.perf_counter()
    for _ in range(_CALLS):
        for _ in range(_INTERVAL // learner.train_steps):
            learner.step()
        if publisher is not None:
            publisher.publish()
    return _CALLS * _INTERVAL / (time.perf_counter() - began)


@contextlib.contextmanager
def _listening_actors(address: str, interval_s: float) -> Iterator[None]:
    """Processes that pull every new version, as collect actors do."""
    command = [sys.executable, "-m", "benchmarks.publish", address, str(interval_s)]
    actors = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(_ACTORS)
    ]
    try:
        for actor in actors:
            assert actor.stdout is not None
            if actor.stdout.readline() != "listening\n":
                raise RuntimeError("a listening actor did not start")
        yield
    finally:
        for actor in actors:
            actor.communicate(timeout=30)  # Closes its standard input, at which it ends.


def _listen(address: str, interval_s: float) -> None:
    from actorlearner.lifecycle.stop import Stop
    from actorlearner.machine.devices import use_cpu
    from actorlearner.variables.puller import VariablePuller

    use_cpu(threads=1)
    stop = Stop()
    VariablePuller(address, interval_s, stop)
    print("listening", flush=True)
    sys.stdin.read()
    stop.request()


if __name__ == "__main__":
    _listen(sys.argv[1], float(sys.argv[2]))
