"""`gpu`: train steps a second of the learner on this machine's GPU, beside its processor.

The learner trains SAC on HalfCheetah over Reverb and publishes its policy, as in a run. Each device is
measured in a process of its own: TensorFlow's devices and threads cannot be changed later.
"""

import dataclasses
import functools
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import reverb
import tensorflow as tf

from actorlearner.config.schema import Config
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.process.cores import cores
from actorlearner.process.tensorflow_setup import use_all_cores
from actorlearner.variables.publisher import Publisher
from benchmarks.learner import Training, fixed_batch, replay
from benchmarks.support import rounds, servers
from benchmarks.support.filling import fill
from benchmarks.support.halfcheetah import configuration
from benchmarks.support.report import Row

_BATCHES = (256, 1_024, 4_096, 16_384)
_PRECISIONS = ("float32", "bfloat16")
_PLAIN, _XLA, _FIXED = "over Reverb", "over Reverb with XLA", "one fixed batch with XLA"

Dataset = Callable[[Config, EnvironmentSpecs, str], tf.data.Dataset]

Rates = dict[str, dict[str, float]]
"""Train steps a second by case and by how they were taken."""


def run(env_steps: int = 50_000, turns: int = 5, round_s: float = 1.0) -> tuple[list[Row], dict[str, Any]]:
    """Measures the GPU, then the processor with one thread for an operation and with all of them.

    Args:
      env_steps: in replay.
      turns: rounds.
      round_s: seconds of each measurement.

    Raises:
      SystemExit: TensorFlow sees no GPU.
    """
    if not tf.config.list_physical_devices("GPU"):
        raise SystemExit("benchmarks gpu: TensorFlow sees no GPU; `actorlearner doctor` says what is missing")
    publishing = f"both: publishing every {configuration().learn.publish_interval}"
    sizes = (env_steps, turns, round_s)
    gpu = measured(None, *sizes)
    processor = {threads: measured(threads, *sizes) for threads in sorted({1, cores()})}
    rows = []
    for case, rates in gpu.items():
        threads = max(processor, key=lambda threads: processor[threads][case][_PLAIN])
        beside = processor[threads][case][_PLAIN]
        settings = f"{publishing}; beside: {cores()} cores, {threads} intra-op"

        def row(what: str, name: str, beside: float, settings: str, case: str = case) -> Row:
            ratio = gpu[case][name] / beside
            return Row("gpu", f"{case}, {what}", beside, gpu[case][name], ratio, None, True, settings)

        rows += [
            row("ratio to the processor", _PLAIN, beside, settings),
            row("learn.xla, ratio to the processor", _XLA, beside, settings),
            row("learn.xla, ratio to one fixed batch", _XLA, rates[_FIXED], publishing),
        ]
    return rows, {"gpu": gpu, "processor": processor}


def measured(threads: int | None, env_steps: int, turns: int, round_s: float) -> Rates:
    """Measures in a process of its own: the GPU, or the processor with so many threads for an operation."""
    environment = dict(os.environ)
    if threads is not None:
        environment["CUDA_VISIBLE_DEVICES"] = "-1"
    arguments = map(str, (threads or 0, env_steps, turns, round_s))
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "rates.json"
        command = [sys.executable, "-m", "benchmarks.gpu", str(path), *arguments]
        subprocess.run(command, env=environment, check=True)
        rates: Rates = json.loads(path.read_text())
    return rates


def _measure(threads: int, env_steps: int, turns: int, round_s: float) -> Rates:
    """Measures all cases in this process; with 0 threads on the GPU, in turn with one fixed batch."""
    use_all_cores(threads or 1)
    ways: dict[str, tuple[Dataset, bool]] = {_PLAIN: (replay, False), _XLA: (replay, True)}
    if not threads:
        ways[_FIXED] = (fixed_batch, True)
    rates: Rates = {}
    with servers.replay_server() as server, tempfile.TemporaryDirectory() as directory:
        specs = fill(server, env_steps)
        for precision, batch in itertools.product(_PRECISIONS, _BATCHES):
            case = f"batches of {batch:,}, {precision}"
            measurements = {}
            for name, (dataset, xla) in ways.items():
                config = _config(batch, precision, xla)
                batches = functools.partial(dataset, config, specs, server.address)
                learner = Training(config, specs, Path(directory) / case / name, batches)
                publisher = Publisher(reverb.Client(server.address), learner.parts)
                learner.publish(publisher, config.learn.publish_interval)
                measurements[name] = functools.partial(
                    rounds.rate, learner.step, round_s, learner.train_steps
                )
            values = rounds.in_turn(measurements, turns)
            rates[case] = {name: statistics.median(values[name]) for name in values}
    return rates


def _config(batch: int, precision: str, xla: bool) -> Config:
    config = configuration()
    learn = dataclasses.replace(config.learn, batch_size=batch, precision=precision, xla=xla)
    return dataclasses.replace(config, learn=learn)


def _main(path: str, threads: str, env_steps: str, turns: str, round_s: str) -> None:
    rates = _measure(int(threads), int(env_steps), int(turns), float(round_s))
    Path(path).write_text(json.dumps(rates))
    os._exit(0)  # Reverb's blocked threads would make the interpreter's shutdown crash.


if __name__ == "__main__":
    _main(*sys.argv[1:])
