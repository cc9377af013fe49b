"""`sampling`: batches of 256 from a replay server in another process, decoded for the train step."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tf_agents.agents import data_converter, tf_agent
from tf_agents.trajectories import trajectory

from actorlearner.agents.experience import StoredTransition, as_transition
from actorlearner.agents.make import make_agent
from actorlearner.config.schema import Config
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.replay.dataset import experience_dataset
from actorlearner.replay.layout import ReplayLayout, make_layout
from benchmarks.support import rounds, servers, stock, threads
from benchmarks.support.filling import fill
from benchmarks.support.halfcheetah import configuration
from benchmarks.support.report import Row

_BATCH = 256

Decode = Callable[[Any], trajectory.Transition]


def run(
    env_steps: int = 20_000, turns: int = 5, calls: int = 400, stock_calls: int = 15
) -> tuple[list[Row], dict[str, Any]]:
    """Measures the rate and the CPU time of the sampling process, all its threads together.

    Args:
      env_steps: in replay.
      turns: rounds.
      calls: our graph calls in one round, of `learn.train_steps_per_call` batches each.
      stock_calls: the same of stock.
    """
    config = configuration()
    per_call = config.learn.train_steps_per_call
    settings = f"both: {per_call} batches a graph call, {threads.like_a_learner(config)}"
    with servers.replay_server() as server:
        specs = fill(server, env_steps)
        agent = make_agent(config, specs).agent
        ours = Sampler(*our_batches(config, specs, server.address), per_call, calls)
        theirs = Sampler(*stock_batches(agent, server.address), per_call, stock_calls)
        rates = rounds.in_turn({"stock": theirs.rate, "ours": ours.rate}, turns)
        server_cpu_s = servers.cpu_s(server)
    cpu, stock_cpu = statistics.median(ours.cpu_ms), statistics.median(theirs.cpu_ms)
    rate = f"batches of {_BATCH} a second, decoded into the transitions that the agent trains on; ratio"
    client = "CPU ms a batch in the client, decoding included"
    return [
        Row("sampling", rate, *rounds.compared(rates, "ours", "stock"), 20, True, settings),
        Row("sampling", client, stock_cpu, cpu, cpu, 1.2, False, settings),
    ], {
        **rates,
        "server_cpu_s": server_cpu_s,
        "stock_cpu_ms_a_batch": theirs.cpu_ms,
        "ours_cpu_ms_a_batch": ours.cpu_ms,
    }


def our_batches(config: Config, specs: EnvironmentSpecs, address: str) -> tuple[tf.data.Dataset, Decode]:
    """Returns our dataset of batches, and a function that decodes a batch as our learner does."""
    layout = make_layout(config, specs)
    return experience_dataset([address], layout, _BATCH, _BATCH), decoder(layout)


def decoder(layout: ReplayLayout) -> Decode:
    """Returns a function that decodes a batch as our learner does."""

    def decode(batch: Any) -> trajectory.Transition:
        stored = layout.decode(batch)
        assert isinstance(stored, StoredTransition)
        return as_transition(stored)

    return decode


def stock_batches(agent: tf_agent.TFAgent, address: str) -> tuple[tf.data.Dataset, Decode]:
    """Returns TF-Agents' dataset of batches, and a function that decodes a batch as its agents do.

    The buffer keeps its defaults: other values of max_cycle_length, dataset_buffer_size and
    num_workers_per_iterator changed the rate by no more than it changes from round to round.
    """
    replay = stock.replay_buffer(agent, server_address=address)
    dataset = replay.as_dataset(sample_batch_size=_BATCH, num_steps=2).prefetch(3)
    return dataset, data_converter.AsTransition(agent.data_context, squeeze_time_dim=True)


class Sampler:
    """Takes batches from a dataset of (batch, ...) and decodes them, in a graph as a learner does."""

    def __init__(self, dataset: tf.data.Dataset, decode: Decode, per_call: int, calls: int) -> None:
        """Takes the first batches, so that everything is traced and connected.

        Args:
          dataset: yields tuples whose first element is a batch.
          decode: turns a batch into transitions, in the graph.
          per_call: batches in one graph call, at least 1.
          calls: graph calls in one measurement.
        """
        iterator = iter(dataset)

        def take() -> trajectory.Transition:
            # A loop's variable: TensorFlow would drop the decoding of a batch that nothing uses.
            transition = decode(next(iterator)[0])
            for _ in tf.range(per_call - 1):
                transition = decode(next(iterator)[0])
            return transition

        self.take: Callable[[], trajectory.Transition] = tf.function(take)
        self._per_call = per_call
        self._calls = calls
        self.cpu_ms: list[float] = []
        self.take()

    def rate(self) -> float:
        """Takes `calls` times `per_call` batches; returns batches a second and keeps the CPU time."""
        batches = self._calls * self._per_call
        cpu, began = time.process_time(), time.perf_counter()
        for _ in range(self._calls):
            self.take()
        elapsed = time.perf_counter() - began
        self.cpu_ms.append(1e3 * (time.process_time() - cpu) / batches)
        return batches / elapsed
