"""`memory`: the memory that a replay server needs for each stored transition."""

from typing import Any

import reverb

from actorlearner.replay.connection import ReplayServer
from actorlearner.replay.layout import make_layout
from actorlearner.replay.writer import ReplayWriter
from benchmarks.support.halfcheetah import configuration, random_env_steps
from benchmarks.support.report import Row
from benchmarks.support.servers import ServerProcess, replay_server

_ENVIRONMENTS = 8

_BYTES_OF_NUMBERS = 4 * (26 + 6 + 1 + 1 + 26)
"""Observation, action, reward, discount and next observation of HalfCheetah; four bytes each."""


def run(recorded: int = 40_000, times: int = 5) -> tuple[list[Row], dict[str, Any]]:
    """Fills a server with each layout in turn; the first time is not counted, in which pools grow.

    Args:
      recorded: env steps, of all environments together.
      times: how often they are written, at least 2.
    """
    details: dict[str, Any] = {"bytes_of_numbers": _BYTES_OF_NUMBERS}
    for layout in ("trajectory", "packed"):
        with replay_server() as server:
            details[layout] = _bytes_a_transition(layout, server, recorded, times)
    ratio = details["packed"] / _BYTES_OF_NUMBERS
    what = "bytes of the server a HalfCheetah transition; ratio to the bytes of its numbers"
    row = Row("memory", what, details["trajectory"], details["packed"], ratio, 1.5, False)
    return [row], details


def _bytes_a_transition(name: str, server: ServerProcess, recorded: int, times: int) -> float:
    config = configuration(name)
    specs, steps = random_env_steps(config, _ENVIRONMENTS, recorded // _ENVIRONMENTS)
    layout = make_layout(config, specs)
    client = reverb.Client(server.address)
    replay = ReplayServer(client, layout)
    writer: ReplayWriter = layout.writer(client, _ENVIRONMENTS)
    held, sizes = [], []
    for _ in range(times):
        for step in steps:
            writer.write(step)
            while not writer.flush(timeout_s=5):
                pass
        while not writer.flush(timeout_s=5, pending_items=0):
            pass
        held.append(server.memory_info().rss)
        sizes.append(replay.status(timeout_s=30).size)
    writer.close(timeout_s=60)
    return (held[-1] - held[0]) / (sizes[-1] - sizes[0])
