"""Where a collect actor's time goes: each part made the longest by far, with a real replay server.

The clock of shares and records advances only where a test advances it: a busy machine makes no difference.
"""

import dataclasses
import functools
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import reverb

from actorlearner.acting import collect_metrics
from actorlearner.acting.collect_metrics import CollectMetrics
from actorlearner.acting.collector import Collector
from actorlearner.acting.policy_function import RandomPolicy
from actorlearner.config.schema import Config, EnvironmentConfig
from actorlearner.environments.batch import EnvironmentBatch
from actorlearner.environments.guarded import load_guarded
from actorlearner.environments.specs import environment_specs
from actorlearner.inspect.bottleneck.waits import (
    ENVIRONMENTS,
    LIMITER,
    POLICY,
    VARIABLES,
    WRITING,
    recent_waits,
)
from actorlearner.process.stop import Stop
from actorlearner.records import metrics
from actorlearner.records.metrics import read_records
from actorlearner.records.run_directory import RunDirectory
from actorlearner.records.time_shares import TimeShares
from actorlearner.replay.connection import ReplayServer
from actorlearner.replay.experience_table import experience_table
from actorlearner.replay.layout import make_layout
from actorlearner.variables.container import PolicyOrder
from tests.support import burdens
from tests.support.replay import LONG_S, with_replay

_ENVIRONMENTS = 2
_WAIT_S = 0.02
_RECORDS = 5


class NoVariables:
    """In place of a VariablePuller whose learner publishes nothing."""

    train_step = -1
    age_s = 0.0


Fractions = Callable[..., dict[str, float]]


@pytest.fixture(name="fractions")
def _fractions(
    small_config: Config, tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch
) -> Fractions:
    """Acts for some records; returns where the time went."""
    monkeypatch.setattr(metrics, "METRICS_INTERVAL_S", 0.3)
    now_s = 0.0

    def takes(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    monkeypatch.setattr(metrics, "time", SimpleNamespace(monotonic=lambda: now_s, time=time.time))
    shares = functools.partial(TimeShares, clock=lambda: now_s)
    monkeypatch.setattr(collect_metrics, "TimeShares", shares)
    monkeypatch.setattr(burdens, "time", SimpleNamespace(sleep=takes))

    def fractions(
        environment: dict[str, Any],
        *,
        policy_s: float = 0.0,
        between_s: float = 0.0,
        writing_s: float = 0.0,
        **replay: Any,
    ) -> dict[str, float]:
        blocks = "updates_per_env_step" in replay
        config = dataclasses.replace(
            with_replay(small_config, **replay),
            environment=EnvironmentConfig(suite="tests.support.burdens:make", name="", kwargs=environment),
        )
        environments = [load_guarded(config.environment, 0, "test", 0, i) for i in range(_ENVIRONMENTS)]
        specs = environment_specs(environments[0])
        layout = make_layout(config, specs)
        server = reverb.Server([experience_table(config, layout)], free_port)
        client = reverb.Client(f"localhost:{free_port}")
        random = RandomPolicy(specs, _ENVIRONMENTS, 0)

        def policy(*observed: Any) -> Any:
            takes(policy_s)
            return random(*observed)

        class Writer:
            """The real writer, in the time that the test sets.

            A flush fails only where the limiter blocks, and then takes its whole timeout.
            """

            def __init__(self) -> None:
                self._writer = layout.writer(client, _ENVIRONMENTS)

            def write(self, steps: Any) -> None:
                takes(writing_s)
                self._writer.write(steps)

            def flush(self, timeout_s: float) -> bool:
                flushed = self._writer.flush(timeout_s if blocks else LONG_S)
                takes(0.0 if flushed else timeout_s)
                return flushed

        directory = RunDirectory(tmp_path)
        stop = Stop()
        replay, batch = ReplayServer(client, layout), EnvironmentBatch(environments)
        puller: Any = NoVariables()
        writer = Writer()
        monkeypatch.setattr(layout, "writer", lambda client, environments: writer)
        collected = CollectMetrics(directory, 0, batch, replay, puller)
        collector = Collector(config, batch, replay, puller, collected, stop)

        def recorded() -> list[dict[str, Any]]:
            records = read_records(directory.metrics("collect-0"))
            if len(records) >= _RECORDS:
                stop.request()  # Also where it waits for the rate limiter.
            return records

        monkeypatch.setattr(Collector, "ended", property(lambda self: len(recorded()) >= _RECORDS))
        while not collector.ended:
            takes(between_s)
            collector.step(policy, PolicyOrder(generation=0, train_step=0))
        server.stop()
        waits = recent_waits([], [recorded()[2:]])  # The first env steps connect, and fill the error buffer.
        assert waits.actors is not None
        assert 0.5 < sum(waits.actors.values()) < 1.01
        return dict(waits.actors)

    return fractions


def _longest(fractions: dict[str, float]) -> str:
    """The part that takes most of the time, if it does by far."""
    *others, longest = sorted(fractions, key=lambda part: fractions[part])
    assert fractions[longest] > 1.5 * fractions[others[-1]], fractions
    return longest


def test_slow_environments_have_the_largest_fraction(fractions: Fractions) -> None:
    assert _longest(fractions({"wait_s": _WAIT_S})) == ENVIRONMENTS


def test_a_slow_policy_has_the_largest_fraction(fractions: Fractions) -> None:
    assert _longest(fractions({}, policy_s=5 * _WAIT_S)) == POLICY


def test_slow_variable_updates_have_the_largest_fraction(fractions: Fractions) -> None:
    """All that is done between two env steps."""
    assert _longest(fractions({}, between_s=5 * _WAIT_S)) == VARIABLES


def test_slow_writing_has_the_largest_fraction(fractions: Fractions) -> None:
    """Without a ratio to be kept."""
    found = fractions({}, writing_s=5 * _WAIT_S, layout="trajectory")
    assert _longest(found) == WRITING
    assert found[LIMITER] < 0.1


def test_a_blocking_rate_limiter_has_the_largest_fraction(fractions: Fractions) -> None:
    """Nobody samples."""
    found = fractions({}, layout="trajectory", updates_per_env_step=1.0, error_buffer=8.0)
    assert _longest(found) == LIMITER
