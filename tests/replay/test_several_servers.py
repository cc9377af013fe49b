"""Sampling from two replay servers: evenly, and past one that has nothing to give."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import reverb
import tensorflow as tf

from actorlearner.config.schema import Config
from actorlearner.replay.dataset import experience_dataset, experience_items
from actorlearner.replay.experience_table import experience_table
from actorlearner.replay.layout import make_layout
from benchmarks.chaos.store import decode_items
from tests.conftest import Eventually
from tests.support.ports import unused_port
from tests.support.processes import PATIENCE_S
from tests.support.replay import LONG_S, SPECS, Replay, with_replay

_COUNT = 512
"""Transitions in each server; those of the second are numbered from here on."""

_FILLED = 4
"""Items that are on their way from each server, at least, while nobody takes any."""

Serve = Callable[..., list[Replay]]


@pytest.fixture
def serve(small_config: Config) -> Iterator[Serve]:
    """Starts two servers."""
    servers = []

    def serve(**replay: Any) -> list[Replay]:
        config = with_replay(small_config, **replay)
        layout = make_layout(config, SPECS)
        found = []
        for _ in range(2):
            port = unused_port()
            servers.append(reverb.Server([experience_table(config, layout)], port))
            found.append(Replay(reverb.Client(f"localhost:{port}"), f"localhost:{port}", layout))
        return found

    yield serve
    for server in servers:
        server.stop()


def _fill(replays: list[Replay], count: int = _COUNT) -> None:
    for place, replay in enumerate(replays):
        assert replay.write(count, first=place * _COUNT).close(LONG_S)


class _Consumer:
    """Takes items one by one, and counts how many transitions each server has given.

    A batch of two items has one of each server in flight, as few as there can be.
    """

    def __init__(self, replays: list[Replay]) -> None:
        self._replays = replays
        self._layout = replays[0].layout
        items = experience_items([replay.address for replay in replays], self._layout, batch_size=2)
        options = tf.data.Options()
        options.experimental_optimization.inject_prefetch = False  # Nothing is to be ahead of `take`.
        self._iterator = iter(items.map(lambda item: item.data).with_options(options))
        self.taken = [0] * len(replays)

    def take(self) -> int:
        """Takes an item; returns which server it is from."""
        item = next(self._iterator)
        transitions = decode_items(tf.nest.map_structure(lambda leaf: leaf[None], item), self._layout)
        places = set(transitions.reward.numpy().astype(int) // _COUNT)
        assert len(places) == 1
        place = places.pop()
        self.taken[place] += self._layout.env_steps_per_item
        return place

    @property
    def all_are_ready(self) -> bool:
        """Whether each server has handed out what it can ahead. The last of it may not be here yet."""
        ahead = _FILLED * self._layout.env_steps_per_item
        looks = zip(self._replays, self.taken, strict=True)
        return all(replay.status().samples - taken >= ahead for replay, taken in looks)


def test_servers_take_turns(serve: Serve, eventually: Eventually) -> None:
    replays = serve()
    _fill(replays)
    _take_in_turn(_Consumer(replays), eventually)


def test_a_server_that_blocks_sampling_is_skipped(serve: Serve, eventually: Eventually) -> None:
    replays = serve()
    _fill(replays[:1])
    consumer = _Consumer(replays)
    assert {consumer.take() for _ in range(100)} == {0}
    _fill(replays)
    eventually(lambda: consumer.take() == 1, LONG_S)
    _take_in_turn(consumer, eventually)


@pytest.mark.parametrize("layout", ["packed", "trajectory"])
def test_batches_have_transitions_of_both(serve: Serve, layout: str, eventually: Eventually) -> None:
    replays = serve(layout=layout)
    _fill(replays)
    dataset = experience_dataset([replay.address for replay in replays], replays[0].layout, 32, 16)
    batches, seen = iter(dataset), set[int]()

    def have_come_from_both() -> bool:
        batch, _ = next(batches)
        reward = replays[0].layout.decode(batch).reward.numpy()
        assert reward.shape == (16,)
        seen.update(reward.astype(int) // _COUNT)
        return seen == {0, 1}

    eventually(have_come_from_both, PATIENCE_S)


def _take_in_turn(consumer: _Consumer, eventually: Eventually) -> None:
    """Takes two items again and again, whenever both servers have some to give: mostly one of each."""
    consumer.take()  # Nothing is on its way before the first.
    rounds, of_both = 64, 0
    for _ in range(rounds):
        eventually(lambda: consumer.all_are_ready, PATIENCE_S)
        of_both += {consumer.take(), consumer.take()} == {0, 1}
    assert of_both >= 0.75 * rounds
