"""The memory estimates against real servers, and the refusal of a capacity that does not fit."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reverb
import tensorflow as tf
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step

from actorlearner.agents.ppo import PpoConfig
from actorlearner.config.schema import AgentConfig, Config
from actorlearner.environments.environment import EnvSteps
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.errors import ConfigurationError
from actorlearner.records.formatting import bytes_text
from actorlearner.replay import capacity
from actorlearner.replay.capacity import (
    capacity_of,
    check_memory,
    checkpoint_bytes,
    experience_bytes,
    max_capacity,
)
from actorlearner.replay.layout import ReplayLayout, make_layout
from tests.support.replay import LONG_S, SPECS, with_replay
from tests.support.server_process import replay_server

ENVIRONMENTS = 8
EPISODE = 200
POOLS_BYTES = 12 * 2**20
"""What a server grows by with its first transitions, however many follow."""

VECTOR = tf.TensorSpec([26], tf.float32)
LONG_VECTOR = tf.TensorSpec([120], tf.float32)
PICTURE = tensor_spec.BoundedTensorSpec([84, 84, 4], tf.uint8, 0, 255)
ACTION = tensor_spec.BoundedTensorSpec([6], tf.float32, -1.0, 1.0)

CASES = {"packed vectors": ("packed", LONG_VECTOR, 1, 28_000)}
LONG_CASES = {
    "trajectories of vectors": ("trajectory", VECTOR, 1, 8_000),
    "packed pictures": ("packed", PICTURE, 1, 1_600),
    "trajectories of pictures": ("trajectory", PICTURE, 1, 2_400),
    "trajectories of several env steps": ("trajectory", VECTOR, 3, 8_000),
}


def specs_of(observation: Any) -> EnvironmentSpecs:
    return EnvironmentSpecs(observation, ACTION, time_step.time_step_spec(observation))


def random_bytes(spec: Any, random: np.random.Generator) -> np.ndarray:
    """Arrays that cannot be compressed."""
    dtype = np.dtype(spec.dtype.as_numpy_dtype)
    shape = (ENVIRONMENTS, *spec.shape)
    return np.frombuffer(random.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)


def fill(layout: ReplayLayout, address: str, specs: EnvironmentSpecs, count: int) -> None:
    """Writes random transitions."""
    random = np.random.default_rng(0)
    writer = layout.writer(reverb.Client(address), ENVIRONMENTS)
    scalar = tf.TensorSpec([], tf.float32)
    for i in range(count // ENVIRONMENTS):
        last = np.full(ENVIRONMENTS, i % EPISODE == EPISODE - 1)
        observation, following, action, reward, discount = (
            random_bytes(spec, random)
            for spec in (specs.observation, specs.observation, specs.action, scalar, scalar)
        )
        first = np.full(ENVIRONMENTS, i % EPISODE == 0)
        steps = np.full(ENVIRONMENTS, i, np.int64)
        valid = np.ones(ENVIRONMENTS, np.bool_)
        writer.write(EnvSteps(observation, first, action, reward, discount, following, last, steps, valid))
        assert writer.flush(LONG_S)
    assert writer.close(LONG_S)


@pytest.mark.parametrize(
    "case", [*CASES, *(pytest.param(case, marks=pytest.mark.long) for case in LONG_CASES)]
)
def test_estimates_match_a_real_server(small_config: Config, tmp_path: Path, case: str) -> None:
    """Of a full table that was saved twice: 0.5 to 1 times the memory, 0.7 to 1.05 times the room on disk.

    How much of what saving takes stays with the allocator depends on which of the server's threads met.
    """
    name, observation, n_step, count = (CASES | LONG_CASES)[case]
    config = with_replay(small_config, layout=name, capacity=count)
    config = dataclasses.replace(config, agent=AgentConfig(name="sac", n_step=n_step))
    specs = specs_of(observation)
    layout = make_layout(config, specs)
    with replay_server(config, specs, tmp_path) as server:
        empty = server.data_bytes
        fill(layout, server.address, specs, count)
        server.save()
        server.save()
        grown = server.data_bytes - empty
    estimate = experience_bytes(count, layout)
    print(f"{case}: grown by {grown}, {grown / estimate:.2f} of the estimate")
    assert 0.5 * estimate <= grown <= estimate + POOLS_BYTES
    saved = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()) / 2
    assert 0.7 <= saved / checkpoint_bytes(count, layout) <= 1.05


@pytest.mark.parametrize("name", ["packed", "trajectory"])
def test_the_max_capacity_fits(small_config: Config, name: str) -> None:
    layout = make_layout(with_replay(small_config, layout=name), SPECS)
    for available in (0, 10**4, 10**6, 12_345_678, 10**9, 10**14):
        largest = max_capacity(available, layout)
        assert experience_bytes(largest, layout) <= available
        assert experience_bytes(largest * 11 // 10 + 2 * layout.env_steps_per_item, layout) > available
        assert set(str(largest)[2:]) <= {"0"}


def test_too_large_a_capacity_is_refused(small_config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = 1_000_000
    config = with_replay(small_config, capacity=wanted)
    layout = make_layout(config, SPECS)
    needed = experience_bytes(wanted, layout)
    monkeypatch.setattr(capacity, "available_bytes", lambda: needed)
    check_memory(config, layout)
    monkeypatch.setattr(capacity, "available_bytes", lambda: needed - 1)
    with pytest.raises(ConfigurationError) as refusal:
        check_memory(config, layout)
    (line,) = refusal.value.problems
    match = re.fullmatch(
        r"replay.capacity: 1000000 transitions may need (.*) of memory, and (.*) is available; "
        r"allowed: at most (\d+) with this environment on this machine",
        line,
    )
    assert match
    assert match.group(1, 2) == (bytes_text(needed), bytes_text(needed - 1))
    check_memory(with_replay(small_config, capacity=int(match[3])), layout)


@pytest.mark.parametrize(("max_policy_lag", "iterations"), [(0, 4), (1, 8)])
def test_an_on_policy_table_holds_iterations(
    small_config: Config, monkeypatch: pytest.MonkeyPatch, max_policy_lag: int, iterations: int
) -> None:
    agent = PpoConfig(env_steps_per_iteration=512, fragment_length=32, max_policy_lag=max_policy_lag)
    config = dataclasses.replace(small_config, agent=agent)
    layout = make_layout(config, SPECS)
    assert capacity_of(config, layout) == iterations * 512
    monkeypatch.setattr(capacity, "available_bytes", lambda: experience_bytes(iterations * 256, layout))
    with pytest.raises(ConfigurationError) as refusal:
        check_memory(config, layout)
    (line,) = refusal.value.problems
    match = re.fullmatch(r"agent.env_steps_per_iteration: .*; allowed: at most (\d+) with this .*", line)
    assert match
    assert 230 <= int(match[1]) <= 256  # Rounded down to two digits.


def test_a_resumed_run_continues_if_its_transitions_fit(
    small_config: Config, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    config = with_replay(small_config, capacity=1_000_000)
    layout = make_layout(config, SPECS)
    monkeypatch.setattr(capacity, "available_bytes", lambda: experience_bytes(5_000, layout))
    check_memory(config, layout, saved=5_000)
    assert "replay.capacity: 1000000 transitions may need" in caplog.text
    assert "the run continues: its 5,000 transitions fit" in caplog.text
    with pytest.raises(ConfigurationError, match=r"may need .* is available; allowed: at most"):
        check_memory(config, layout, saved=6_000)
