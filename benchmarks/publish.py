"""`publish`: the learner's cost of publishing the policy variables to listening actors."""

import contextlib
import functools
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import reverb

from actorlearner.variables.publisher import Publisher
from benchmarks.learner import Training, fixed_batch
from benchmarks.support import rounds, servers, threads
from benchmarks.support.filling import fill
from benchmarks.support.halfcheetah import configuration
from benchmarks.support.report import Row

_GOALS = {100: 0.99, 20: 0.95}
"""The minimum ratio to not publishing, by train steps between two publications.

Publishing five times as often may cost five times as much.
"""


def run(
    actors: int = 4, turns: int = 31, train_steps: int = 300, env_steps: int = 4_000
) -> tuple[list[Row], dict[str, Any]]:
    """Measures in turn with and without publishing; the actors listen during both.

    Args:
      actors: processes that pull every version.
      turns: rounds. Many short ones: the machine's speed changes from one second to the next.
      train_steps: in each measurement, a multiple of all intervals.
      env_steps: in replay.
    """
    config = configuration()
    set_threads = threads.like_a_learner(config)
    with servers.replay_server() as server, tempfile.TemporaryDirectory() as directory:
        specs = fill(server, env_steps)
        learner = Training(config, specs, Path(directory), lambda: fixed_batch(config, specs, server.address))
        publisher = Publisher(reverb.Client(server.address), learner.parts)
        measurements = {"without": functools.partial(_rate, learner, train_steps, None, 0)} | {
            f"every {interval}": functools.partial(_rate, learner, train_steps, publisher, interval)
            for interval in _GOALS
        }
        with _listening_actors(actors, server.address, config.collect.variables_interval_s):
            details = rounds.in_turn(measurements, turns)
    settings = f"both: one fixed batch, {config.learn.train_steps_per_call} train steps a call, {set_threads}"
    rows = []
    for interval, goal in _GOALS.items():
        name = f"every {interval}"
        what = f"train steps a second, publishing {name} to {actors} actors; ratio to not publishing"
        figures = rounds.compared(details, name, "without")
        rows.append(Row("publish", what, *figures, goal, True, settings))
    return rows, details


def _rate(learner: Training, train_steps: int, publisher: Publisher | None, interval: int) -> float:
    """Takes `train_steps` train steps; returns train steps a second."""
    learner.publish(publisher, interval)
    began = time.perf_counter()
    for _ in range(train_steps // learner.train_steps):
        learner.step()
    return train_steps / (time.perf_counter() - began)


@contextlib.contextmanager
def _listening_actors(count: int, address: str, interval_s: float) -> Iterator[None]:
    """Context manager; in it, processes pull every new version, as collect actors do."""
    command = [sys.executable, "-m", "benchmarks.publish", address, str(interval_s)]
    actors = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
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
    from actorlearner.process.stop import Stop
    from actorlearner.process.tensorflow_setup import limit_tensorflow
    from actorlearner.variables.puller import VariablePuller

    limit_tensorflow(threads=1)
    stop = Stop()
    VariablePuller(address, interval_s, stop)
    print("listening", flush=True)
    sys.stdin.read()
    stop.request()


if __name__ == "__main__":
    _listen(sys.argv[1], float(sys.argv[2]))
