"""Each check of the doctor, with a problem that it must find."""

import dataclasses
import importlib.metadata
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from actorlearner.agents.dqn import DqnConfig
from actorlearner.agents.ppo import PpoConfig
from actorlearner.agents.sac import SacConfig
from actorlearner.config.schema import AgentConfig, Config, EnvironmentConfig
from actorlearner.inspect.doctor import machine, round_trip
from actorlearner.inspect.doctor.check import Check, CheckedExperiment, Result, Status
from actorlearner.inspect.doctor.run_checks import CHECKS
from actorlearner.inspect.doctor.worker import attempt
from actorlearner.process import ram
from actorlearner.records.formatting import bytes_text
from actorlearner.replay import capacity
from actorlearner.replay.packed import PackedLayout
from tests.support.replay import with_replay

BY_NAME: dict[str, Check] = {check.name: check for check in CHECKS}

Change = Callable[..., Config]


@pytest.fixture
def experiment(small_config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CheckedExperiment:
    """DQN on CartPole. The threads of TensorFlow stay as they are in this process."""
    monkeypatch.setattr("actorlearner.process.tensorflow_setup.limit_tensorflow", lambda threads: None)
    return CheckedExperiment(small_config, tmp_path / "runs" / "new")


def check(name: str, experiment: CheckedExperiment) -> Result:
    return attempt(BY_NAME[name], experiment)


def of_environment(experiment: CheckedExperiment, **environment: Any) -> CheckedExperiment:
    config = dataclasses.replace(experiment.config, environment=EnvironmentConfig(**environment))
    return CheckedExperiment(config, experiment.run_dir)


def of_agent(experiment: CheckedExperiment, agent: AgentConfig) -> CheckedExperiment:
    return CheckedExperiment(dataclasses.replace(experiment.config, agent=agent), experiment.run_dir)


def broken(experiment: CheckedExperiment, how: str) -> CheckedExperiment:
    return of_environment(experiment, suite="tests.support.faulty:make_broken", name="", kwargs={"how": how})


def test_the_platform(experiment: CheckedExperiment) -> None:
    status, detail = check("platform", experiment)
    assert status is Status.OK
    assert detail.startswith("CPython 3.11.")


@pytest.mark.parametrize(
    ("function", "value", "expected"),
    [
        ("system", "Darwin", "this is Darwin x86_64, but "),
        ("machine", "aarch64", "this is Linux aarch64, but "),
        ("python_version", "3.12.1", "this is CPython 3.12.1, but "),
        ("python_implementation", "PyPy", "this is PyPy 3.11."),
    ],
)
def test_another_platform(
    experiment: CheckedExperiment, monkeypatch: pytest.MonkeyPatch, function: str, value: str, expected: str
) -> None:
    monkeypatch.setattr(machine.platform, function, lambda: value)
    status, detail = check("platform", experiment)
    assert status is Status.FAIL
    assert detail.startswith(expected)


def test_a_processor_without_avx(
    experiment: CheckedExperiment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for flags, status in (("fpu sse4_2 avx", Status.OK), ("fpu sse4_2 avxx", Status.FAIL)):
        (tmp_path / "cpuinfo").write_text(f"model name : x\nflags : {flags}\nbugs :\n")
        monkeypatch.setattr(machine, "_CPUINFO", tmp_path / "cpuinfo")
        assert check("platform", experiment).status is status


INSTALLED = {"tensorflow": "2.15.1", "dm-reverb": "0.14.0", "tf-agents": "0.19.0", "gym": "0.23.0"}
PINS = [*(f"{name}=={version}" for name, version in INSTALLED.items()), 'ruff; extra == "dev"']


@pytest.mark.parametrize(
    ("changed", "status", "expected"),
    [
        ({}, Status.OK, "all pins are kept, among them tensorflow 2.15.1"),
        ({"tensorflow": "2.16.1"}, Status.FAIL, "dm-reverb 0.14.0 needs tensorflow~=2.15.0 (here: 2.16.1): "),
        ({"tensorflow": "2.15.0"}, Status.FAIL, "tensorflow==2.15.1 (here: 2.15.0): make setup"),
        ({"dm-reverb": None}, Status.FAIL, "dm-reverb not installed: make setup"),
        ({"gym": None}, Status.FAIL, "gym==0.23.0 (here: none): make setup"),
        ({"gym": "0.26.2"}, Status.WARN, "gym==0.23.0 (here: 0.26.2): make setup"),
    ],
)
def test_versions(
    experiment: CheckedExperiment,
    monkeypatch: pytest.MonkeyPatch,
    changed: dict[str, str | None],
    status: Status,
    expected: str,
) -> None:
    installed = INSTALLED | changed
    needs = {"actorlearner": PINS, "dm-reverb": ["dm-tree", "tensorflow ~=2.15.0 ; extra == 'tensorflow'"]}

    def version(name: str) -> str:
        found = {**installed, "dm-tree": "0.1.8"}.get(name)
        if found is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return found

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: needs[name])
    found = check("versions", experiment)
    assert found.status is status
    assert found.detail.startswith(expected)


def test_a_failed_round_trip_names_the_environment_that_failed(
    experiment: CheckedExperiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(round_trip, "_ENV_STEPS", 30)
    breaks = {"suite": "tests.support.faulty:make_broken", "name": "", "kwargs": {"how": "raise"}}
    status, detail = check("replay", of_environment(experiment, **breaks, max_faults=0))
    assert status is Status.FAIL
    assert detail.startswith("the environment failed: ")
    assert "http_proxy" not in detail


def test_a_checkout_that_is_not_installed(
    experiment: CheckedExperiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def requires(name: str) -> list[str]:
        if name == "actorlearner":
            raise importlib.metadata.PackageNotFoundError(name)
        return []

    monkeypatch.setattr(importlib.metadata, "requires", requires)
    assert check("versions", experiment).status is Status.WARN


def test_a_reverb_that_does_not_load(experiment: CheckedExperiment, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check("libraries", experiment).status is Status.OK
    monkeypatch.setitem(sys.modules, "reverb", None)
    status, detail = check("libraries", experiment)
    assert status is Status.FAIL
    assert "ImportError" in detail or "ModuleNotFoundError" in detail
    assert detail.endswith(BY_NAME["libraries"].repair)


def test_gpus(experiment: CheckedExperiment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gpu = tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")
    monkeypatch.setattr(machine, "_DEVICES", tmp_path)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    assert check("gpus", experiment).status is Status.OK
    with_xla = _with_learn(experiment, xla=True)
    assert check("gpus", with_xla) == (
        Status.WARN,
        "none here, and on the processor learn.xla=false is faster",
    )
    for name in ("nvidiactl", "nvidia0"):
        (tmp_path / name).touch()
    status, detail = check("gpus", experiment)
    assert status is Status.WARN
    assert detail.startswith("/dev has nvidia0, but TensorFlow sees no GPU: pip install ")
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [gpu])
    monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda gpu: {"device_name": "H200"})
    assert check("gpus", with_xla) == (Status.OK, "1, for the learner: H200")
    found = "1, for the learner: H200; learn.xla=true is faster there"
    assert check("gpus", experiment) == (Status.OK, found)


def _with_learn(experiment: CheckedExperiment, **settings: object) -> CheckedExperiment:
    learn = dataclasses.replace(experiment.config.learn, **settings)
    return CheckedExperiment(dataclasses.replace(experiment.config, learn=learn), experiment.run_dir)


@pytest.mark.parametrize(
    ("flags", "precision", "status", "expected"),
    [
        ("avx", "float32", Status.OK, "float32; the processor has no unit for bfloat16"),
        (
            "avx",
            "bfloat16",
            Status.WARN,
            "the processor has no unit for bfloat16: learn.precision=float32 is ",
        ),
        ("avx amx_bf16 avx512_bf16", "float32", Status.OK, "float32; the processor has amx_bf16, so learn."),
        ("avx avx512_bf16", "bfloat16", Status.OK, "bfloat16; the processor has avx512_bf16"),
    ],
)
def test_precision(
    experiment: CheckedExperiment,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    flags: str,
    precision: str,
    status: Status,
    expected: str,
) -> None:
    (tmp_path / "cpuinfo").write_text(f"flags : {flags}\n")
    monkeypatch.setattr(machine, "_CPUINFO", tmp_path / "cpuinfo")
    found = check("precision", _with_learn(experiment, precision=precision))
    assert found.status is status
    assert found.detail.startswith(expected)


def test_the_network(experiment: CheckedExperiment, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check("network", experiment).status is Status.OK

    def refuse(*arguments: object, **keywords: object) -> None:
        raise ConnectionRefusedError("refused")

    with monkeypatch.context() as patch:
        patch.setattr(socket, "create_connection", refuse)
        assert check("network", experiment) == (
            Status.FAIL,
            "ConnectionRefusedError: refused: set the loopback interface up",
        )
    monkeypatch.setattr(machine, "free_port", refuse)
    assert check("network", experiment).status is Status.FAIL


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"suite": "gym", "name": "Pendulum-v1"}, "float32[3] -> float32[1], limit 200, "),
        (
            {"suite": "gym", "name": "Pendulum-v1", "max_episode_steps": 1234},
            "float32[3] -> float32[1], limit 1,234, ",
        ),
        (
            {"suite": "gym", "name": "Pendulum-v1", "action_repeat": 3},
            "float32[3] -> float32[1], limit 67, ",
        ),
        ({"suite": "gym:make", "name": "CartPole-v1"}, "float32[4] -> int64, no known limit, "),
        (
            {"suite": "dm_control", "name": "cartpole-balance"},
            "float32[5] -> float32[1], limit 1,000, ",
        ),
    ],
)
def test_an_environment(experiment: CheckedExperiment, environment: dict[str, Any], expected: str) -> None:
    status, detail = check("environment", of_environment(experiment, **environment))
    assert status is Status.OK
    assert detail.startswith(expected)
    assert detail.endswith(" env steps/s")


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("raise", "FloatingPointError: the pendulum came off: make and step it by itself"),
        (
            "nan",
            "step returned an observation that is not finite, at env step 20: make and step it by itself",
        ),
    ],
)
def test_an_environment_that_breaks(experiment: CheckedExperiment, how: str, expected: str) -> None:
    assert check("environment", broken(experiment, how)) == (Status.FAIL, expected)


def test_an_environment_with_a_mask(experiment: CheckedExperiment) -> None:
    masked = of_environment(experiment, suite="tests.support.masked:make", name="")
    masked = of_agent(masked, PpoConfig(action_mask="allowed"))
    assert check("environment", masked).status is Status.OK
    assert check("replay", masked).status is Status.OK


def test_an_environment_that_cannot_be_made(experiment: CheckedExperiment) -> None:
    unmade = of_environment(experiment, suite="gym", name="Pendulum-v1", kwargs={"gravity": 1})
    status, detail = check("environment", unmade)
    assert status is Status.FAIL
    assert detail.startswith('environment.kwargs: {"gravity": 1} cannot be passed to Pendulum-v1: ')


def test_an_agent_that_cannot_act_there(experiment: CheckedExperiment) -> None:
    assert check("agent", experiment).status is Status.OK
    status, detail = check("agent", of_agent(experiment, SacConfig()))
    assert status is Status.FAIL
    assert detail.startswith("agent.name: ")


def test_memory(experiment: CheckedExperiment, monkeypatch: pytest.MonkeyPatch) -> None:
    replay = capacity.experience_bytes(experiment.config.replay.capacity, experiment.layout)
    for available, status, expected in (
        (replay - 1, Status.FAIL, "replay.capacity: 1000 transitions may need "),
        (replay + 1, Status.WARN, f"replay {bytes_text(replay)}, "),
        (2**40, Status.OK, f"replay {bytes_text(replay)}, "),
    ):
        for module in (ram, capacity):
            monkeypatch.setattr(module, "available_bytes", lambda available=available: available)
        found = check("memory", experiment)
        assert found.status is status
        assert found.detail.startswith(expected)


def test_memory_and_disk_of_an_on_policy_agent(
    experiment: CheckedExperiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its table holds four iterations, however large replay.capacity is."""
    of_ppo = of_agent(experiment, PpoConfig(env_steps_per_iteration=512, fragment_length=32))
    needed = bytes_text(capacity.experience_bytes(4 * 512, of_ppo.layout))
    for module in (ram, capacity):
        monkeypatch.setattr(module, "available_bytes", lambda: 2**30)
    status, detail = check("memory", of_ppo)
    assert status is Status.WARN
    assert detail.startswith(f"replay {needed}, ")
    assert ": lower agent.env_steps_per_iteration or " in detail
    free = shutil.disk_usage(experiment.run_dir.parents[1])
    monkeypatch.setattr(shutil, "disk_usage", lambda path: free._replace(free=0))
    status, detail = check("disk", of_ppo)
    saved = bytes_text(3 * capacity.checkpoint_bytes(4 * 512, of_ppo.layout))
    assert status is Status.FAIL
    assert detail.startswith(f"checkpoints: replay {saved}, ")
    assert ": lower agent.env_steps_per_iteration, or " in detail


def test_a_disk_that_is_full(experiment: CheckedExperiment, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check("disk", experiment).status is Status.OK
    free = shutil.disk_usage(experiment.run_dir.parents[1])
    monkeypatch.setattr(shutil, "disk_usage", lambda path: free._replace(free=0))
    status, detail = check("disk", experiment)
    assert status is Status.FAIL
    assert detail.startswith("checkpoints: replay ")
    assert f"; 0.0 MiB free in {experiment.run_dir.parents[1]}: lower replay.capacity" in detail
    assert not experiment.run_dir.parent.exists(), "nothing is left behind"


def test_existing_checkpoints_count_as_free_disk_space(
    experiment: CheckedExperiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = shutil.disk_usage(experiment.run_dir.parents[1])
    monkeypatch.setattr(shutil, "disk_usage", lambda path: free._replace(free=0))
    folder = experiment.run_dir / "checkpoints" / "replay" / "2026"
    folder.mkdir(parents=True)
    (folder / "chunks").write_bytes(bytes(100 * 2**20))
    assert check("disk", experiment).status is Status.OK


def test_a_directory_that_cannot_be_written(experiment: CheckedExperiment) -> None:
    elsewhere = CheckedExperiment(experiment.config, Path("/proc/nowhere/run"))
    status, detail = check("disk", elsewhere)
    assert status is Status.FAIL
    assert detail.startswith("/proc cannot be written to, ")


@pytest.mark.parametrize(
    "agent",
    [DqnConfig(), DqnConfig(n_step=3), DqnConfig(lstm_units=8), PpoConfig()],
    ids=["transitions", "three env steps", "an LSTM", "on-policy"],
)
def test_a_round_trip(experiment: CheckedExperiment, agent: AgentConfig) -> None:
    config = with_replay(experiment.config, updates_per_env_step=1.0, min_size=500)
    status, detail = check("replay", of_agent(CheckedExperiment(config, experiment.run_dir), agent))
    assert status is Status.OK, detail
    assert detail.startswith("10 transitions written, 20 sampled and equal, in ")


def test_a_round_trip_that_changes_something(
    experiment: CheckedExperiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode = PackedLayout.decode
    changed = lambda self, batch: (stored := decode(self, batch))._replace(reward=stored.reward + 1.0)  # noqa: E731
    monkeypatch.setattr(PackedLayout, "decode", changed)
    status, detail = check("replay", experiment)
    assert status is Status.FAIL
    assert detail.startswith("sampled transitions differ from the written ones: ")


def test_a_replay_server_that_accepts_no_writes(
    experiment: CheckedExperiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(round_trip, "_write", lambda *arguments: (_ for _ in ()).throw(TimeoutError("no")))
    assert check("replay", experiment) == (Status.FAIL, f"TimeoutError: no: {BY_NAME['replay'].repair}")
