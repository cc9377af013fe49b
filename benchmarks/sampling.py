"""`sampling`: batches of 256 from a replay server in another process."""

import itertools
import time
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from tf_agents.replay_buffers import reverb_replay_buffer

from actorlearner.agents.make import make_agent
from actorlearner.replay.dataset import experience_dataset
from actorlearner.replay.layout import make_layout
from benchmarks import rounds, stock
from benchmarks.filling import fill
from benchmarks.halfcheetah import configuration
from benchmarks.report import Row
from benchmarks.servers import replay_server

_BATCH = 256
_ENV_STEPS = 20_000
_ROUNDS = 5


def run() -> tuple[list[Row], dict[str, Any]]:
    """Measures the rate and the CPU time of the sampling process, all its threads together."""
    details: dict[str, Any] = {}
    with replay_server() as server:
        specs = fill(server, _ENV_STEPS)
        config = configuration()
        replay = reverb_replay_buffer.ReverbReplayBuffer(
            make_agent(config, specs).agent.collect_data_spec,
            sequence_length=2,
            table_name=stock.EXPERIENCE_TABLE,
            server_address=server.address,
        )
        ours = Sampler(
            experience_dataset([server.address], make_layout(config, specs), _BATCH, _BATCH), batches=4_000
        )
        theirs = Sampler(replay.as_dataset(sample_batch_size=_BATCH, num_steps=2).prefetch(3), batches=150)
        values = rounds.medians({"stock": theirs.rate, "ours": ours.rate}, _ROUNDS, details)
        details["server_cpu_s"] = server.cpu_s
    details |= {"stock_cpu_ms_a_batch": theirs.cpu_ms, "ours_cpu_ms_a_batch": ours.cpu_ms}
    ratio = rounds.ratio(details, "ours", "stock")
    cpu = sorted(ours.cpu_ms)[_ROUNDS // 2]
    stock_cpu = sorted(theirs.cpu_ms)[_ROUNDS // 2]
    return [
        Row("sampling", "batches of 256 a second; ratio", values["stock"], values["ours"], ratio, 20, True),
        Row("sampling", "CPU ms a batch in the client", stock_cpu, cpu, cpu, 1.2, False),
    ], details


class Sampler:
    """Takes batches from a dataset."""

    def __init__(self, dataset: tf.data.Dataset, batches: int) -> None:
        """Takes the first batches, so that everything is traced and connected."""
        self._iterator: Iterator[Any] = iter(dataset)
        self._batches = batches
        self.cpu_ms: list[float] = []
        self._take(10)

    def _take(self, count: int) -> None:
        for _ in itertools.islice(self._iterator, count):
            pass

    def rate(self) -> float:
        """Takes a number of batches; returns batches a second and keeps the CPU time."""
        cpu, began = time.process_time(), time.perf_counter()
        self._take(self._batches)
        elapsed = time.perf_counter() - began
        self.cpu_ms.append(1e3 * (time.process_time() - cpu) / self._batches)
        return self._batches / elapsed
