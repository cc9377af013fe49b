"""`capacity`: the insert and sample rates of 1, 2 and 4 replay servers, and their CPU time.

One process writes HalfCheetah's transitions to all servers as fast as it can, then draws batches from all of
them. It shares the machine's cores with the servers, so the rates are lower bounds. The needs of a machine
with more cores follow from a server's CPU time.
"""

import dataclasses
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import reverb

from actorlearner.environments.environment import EnvSteps
from actorlearner.records.formatting import plural
from actorlearner.replay.dataset import experience_dataset
from actorlearner.replay.packed import PackedLayout
from benchmarks.sampling import Sampler, decoder
from benchmarks.support import markdown, servers, threads
from benchmarks.support.filling import ENVIRONMENTS, write
from benchmarks.support.halfcheetah import configuration, random_env_steps
from benchmarks.support.report import Row, number
from benchmarks.support.servers import ServerProcess, cpu_s

_BATCH = 256
_MIB = float(1 << 20)


@dataclasses.dataclass(frozen=True)
class Flow:
    """Transitions that went into or out of all servers.

    Attributes:
      per_s: transitions a second.
      server_cpu_us: CPU microseconds of the servers for one transition.
    """

    per_s: float
    server_cpu_us: float


def run(
    env_steps: int = 20_000,
    sizes: Sequence[int] = (1, 2, 4),
    turns: int = 3,
    passes: int = 20,
    calls: int = 400,
) -> tuple[list[Row], dict[str, Any]]:
    """Measures both directions with each number of servers, the sizes in turn in every round.

    Args:
      env_steps: written to each server in one pass.
      sizes: numbers of servers.
      turns: rounds.
      passes: of one measurement of writing, over all servers together.
      calls: graph calls of one measurement of drawing, of `learn.train_steps_per_call` batches each.
    """
    config = configuration()
    settings = f"one client: {threads.like_a_learner(config)}"
    specs, steps = random_env_steps(config, ENVIRONMENTS, env_steps // ENVIRONMENTS)
    layout = PackedLayout(specs, n_step=1, gamma=config.agent.gamma)
    taken: dict[int, list[Flow]] = {size: [] for size in sizes}
    given: dict[int, list[Flow]] = {size: [] for size in sizes}
    for _ in range(turns):
        for size in sizes:
            with ExitStack() as stack:
                started = [stack.enter_context(servers.replay_server()) for _ in range(size)]
                taken[size].append(_write(started, layout, steps, passes // size))
                given[size].append(_draw(started, layout, config.learn.train_steps_per_call, calls))
    rows = []
    for verb, flows in (("into", taken), ("out of", given)):
        for size in sizes:
            what = f"transitions a second {verb} {plural(size, 'replay server')}"
            rate = _median(flows[size]).per_s
            rows.append(Row("capacity", what, None, rate, rate, None, True, settings))
    details: dict[str, Any] = {
        verb: {size: [dataclasses.asdict(flow) for flow in flows[size]] for size in sizes}
        for verb, flows in (("taken", taken), ("given", given))
    }
    return rows, details | {"lines": _table(taken, given, layout.format.width)}


def _write(
    started: Sequence[ServerProcess], layout: PackedLayout, steps: Sequence[EnvSteps], passes: int
) -> Flow:
    clients = [reverb.Client(server.address) for server in started]

    def all_passes() -> None:
        for _ in range(passes):
            for client in clients:
                write(steps, layout.writer(client, ENVIRONMENTS))

    return _measure(started, all_passes, passes * len(started) * len(steps) * ENVIRONMENTS)


def _draw(started: Sequence[ServerProcess], layout: PackedLayout, per_call: int, calls: int) -> Flow:
    dataset = experience_dataset([server.address for server in started], layout, _BATCH, _BATCH)
    sampler = Sampler(dataset, decoder(layout), per_call, calls)
    return _measure(started, sampler.rate, calls * per_call * _BATCH)


def _measure(started: Sequence[ServerProcess], work: Callable[[], object], transitions: int) -> Flow:
    before, began = sum(cpu_s(server) for server in started), time.perf_counter()
    work()
    elapsed = time.perf_counter() - began
    used = sum(cpu_s(server) for server in started) - before
    return Flow(transitions / elapsed, 1e6 * used / transitions)


def _median(flows: Sequence[Flow]) -> Flow:
    return Flow(*(statistics.median(values) for values in zip(*map(dataclasses.astuple, flows), strict=True)))


def _table(taken: dict[int, list[Flow]], given: dict[int, list[Flow]], width: int) -> list[str]:
    header = (
        "replay servers",
        "transitions/s in",
        "MiB/s in",
        "server CPU µs a transition in",
        "transitions/s out",
        "MiB/s out",
        "server CPU µs a transition out",
    )
    rows = []
    for size, flows in taken.items():
        cells = [str(size)]
        for flow in (_median(flows), _median(given[size])):
            cells += [number(flow.per_s), number(flow.per_s * width / _MIB), f"{flow.server_cpu_us:.2f}"]
        rows.append(cells)
    return [f"A transition has {width} bytes before Reverb compresses it.", "", *markdown.table(header, rows)]
