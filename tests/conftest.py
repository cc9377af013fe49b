"""What tests of several parts share: waiting on conditions, ports, and a small experiment."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # Before TensorFlow is imported by any test.

import functools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from actorlearner.agents.dqn import DqnConfig
from actorlearner.config.schema import CollectConfig, Config, EnvironmentConfig, LearnConfig, ReplayConfig
from actorlearner.process import heartbeat
from actorlearner.process.tensorflow_setup import without_gc
from tests.support.ports import unused_port

Eventually = Callable[..., None]

_INTEGRATION_S = 900.0
"""Longer than all waits of such a test. At this limit all of pytest ends, with a less helpful message."""


class _KeepsSharedTogether(LoadScopeScheduling):
    """Gives each worker test after test, but a module whose tests share a fixture as a whole.

    Without this, every worker would make the fixture again. (`--dist loadgroup` does not see the groups that
    this version of pytest has.)
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if _shares_fixtures(self.config.rootpath / file) else nodeid


@functools.cache
def _shares_fixtures(module: Path) -> bool:
    return 'scope="module"' in module.read_text()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Shares the tests out among the workers of `pytest --numprocesses`."""
    return _KeepsSharedTogether(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Exempts TensorFlow and the test modules from garbage collection; see `without_gc`."""
    with without_gc():
        return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest tests first, so that none of the workers is left alone with one at the end."""
    items.sort(key=_time_limit_s, reverse=True)


def _time_limit_s(item: pytest.Item) -> float:
    """The test's own timeout; tests of complete runs get a longer one."""
    if item.get_closest_marker("integration"):
        item.add_marker(pytest.mark.timeout(_INTEGRATION_S))
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker else 0.0


@pytest.fixture
def eventually() -> Eventually:
    """A function that waits until a condition holds, and fails the test if it does not in time."""

    def eventually(condition: Callable[[], object], timeout_s: float = 120.0) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, f"did not happen within {timeout_s:g} s"
            time.sleep(0.01)

    return eventually


@pytest.fixture
def patience_s(tmp_path: Path) -> Iterator[Callable[[], float]]:
    """A function that returns the patience of this process's newest heartbeat, in seconds."""
    path = tmp_path / "heartbeat.json"
    heartbeat.begin(path)
    heartbeat.beat("a short step")
    yield lambda: heartbeat.read_heartbeat(path).patience_s
    heartbeat.end()


@pytest.fixture
def free_port() -> int:
    """A TCP port that nobody listens on."""
    return unused_port()


@pytest.fixture
def small_config() -> Config:
    """DQN with a small network on CartPole, in batches of 4."""
    return Config(
        environment=EnvironmentConfig(suite="gym", name="CartPole-v1"),
        agent=DqnConfig(layers=[8]),
        replay=ReplayConfig(capacity=1_000, min_size=8),
        collect=CollectConfig(initial_random_steps=0),
        learn=LearnConfig(train_steps=100, batch_size=4, train_steps_per_call=2),
    )
