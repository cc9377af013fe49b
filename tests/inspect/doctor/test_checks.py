"""Each check of the doctor, on what it is to find."""

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

from actorlearner.agents.sac import SacConfig
from actorlearner.config.schema import Config, EnvironmentConfig
from actorlearner.inspect.doctor import libraries, network, platform, round_trip
from actorlearner.inspect.doctor.checks import CHECKS, Check
from actorlearner.inspect.doctor.result import Result, Status
from actorlearner.inspect.doctor.subject import Subject
from actorlearner.inspect.doctor.worker import attempt
from actorlearner.process import memory
from actorlearner.replay import footprint
from actorlearner.replay.item_memory import size
from actorlearner.replay.packed import PackedLayout
from tests.support.replay import with_replay

BY_NAME: dict[str, Check] = {check.name: check for check in CHECKS}

Change = Callable[..., Config]


@pytest.fixture
def subject(small_config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Subject:
    """DQN on CartPole. The threads of TensorFlow stay as they are in this process."""
    monkeypatch.setattr("actorlearner.process.devices.use_cpu", lambda threads: None)
    return Subject(small_config, tmp_path / "runs" / "new")


def check(name: str, subject: Subject) -> Result:
    return attempt(BY_NAME[name], subject)


def of_environment(subject: Subject, **environment: Any) -> Subject:
    config = dataclasses.replace(subject.config, environment=EnvironmentConfig(**environment))
    return Subject(config, subject.run_dir)


def broken(subject: Subject, how: str) -> Subject:
    return of_environment(subject, suite="tests.support.faulty:make_broken", name="", kwargs={"how": how})


def test_the_platform(subject: Subject) -> None:
    status, detail = check("platform", subject)
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
    subject: Subject, monkeypatch: pytest.MonkeyPatch, function: str, value: str, expected: str
) -> None:
    monkeypatch.setattr(platform.platform, function, lambda: value)
    status, detail = check("platform", subject)
    assert status is Status.FAIL
    assert detail.startswith(expected)


def test_a_processor_without_avx(subject: Subject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for flags, status in (("fpu sse4_2 avx", Status.OK), ("fpu sse4_2 avxx", Status.FAIL)):
        (tmp_path / "cpuinfo").write_text(f"model name : x\nflags : {flags}\nbugs :\n")
        monkeypatch.setattr(platform, "_CPUINFO", tmp_path / "cpuinfo")
        assert check("platform", subject).status is status


INSTALLED = {"tensorflow": "2.15.1", "dm-reverb": "0.14.0", "tf-agents": "0.19.0", "gym": "0.23.0"}
PINS = [*(f"{name}=={version}" for name, version in INSTALLED.items()), 'ruff; extra == "dev"']


@pytest.mark.parametrize(
    ("changed", "status", "expected"),
    [
        ({}, Status.OK, "all 4 pins are kept, among them tensorflow 2.15.1"),
        ({"tensorflow": "2.16.1"}, Status.FAIL, "dm-reverb 0.14.0 needs tensorflow~=2.15.0 (here: 2.16.1): "),
        ({"tensorflow": "2.15.0"}, Status.FAIL, "tensorflow==2.15.1 (here: 2.15.0): make setup"),
        ({"dm-reverb": None}, Status.FAIL, "dm-reverb not installed: make setup"),
        ({"gym": None}, Status.FAIL, "gym==0.23.0 (here: none): make setup"),
        ({"gym": "0.26.2"}, Status.WARN, "gym==0.23.0 (here: 0.26.2): make setup"),
    ],
)
def test_versions(
    subject: Subject,
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
    found = check("versions", subject)
    assert found.status is status
    assert found.detail.startswith(expected)


def test_an_environment_that_fails_in_the_round_trip_is_to_blame(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(round_trip, "_ENV_STEPS", 30)
    breaks = {"suite": "tests.support.faulty:make_broken", "name": "", "kwargs": {"how": "raise"}}
    status, detail = check("replay", of_environment(subject, **breaks, max_faults=0))
    assert status is Status.FAIL
    assert detail.startswith("the environment failed: ")
    assert "http_proxy" not in detail


def test_a_checkout_that_is_not_installed(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(name: str) -> list[str]:
        if name == "actorlearner":
            raise importlib.metadata.PackageNotFoundError(name)
        return []

    monkeypatch.setattr(importlib.metadata, "requires", requires)
    assert check("versions", subject).status is Status.WARN


def test_a_reverb_that_does_not_load(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check("libraries", subject).status is Status.OK
    monkeypatch.setitem(sys.modules, "reverb", None)
    status, detail = check("libraries", subject)
    assert status is Status.FAIL
    assert "ImportError" in detail or "ModuleNotFoundError" in detail
    assert detail.endswith(BY_NAME["libraries"].repair)


def test_gpus(subject: Subject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gpu = tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")
    monkeypatch.setattr(libraries, "_DEVICES", tmp_path)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    assert check("gpus", subject).status is Status.OK
    for name in ("nvidiactl", "nvidia0"):
        (tmp_path / name).touch()
    status, detail = check("gpus", subject)
    assert status is Status.WARN
    assert detail.startswith("/dev has nvidia0, but TensorFlow sees no GPU: pip install ")
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [gpu])
    monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda gpu: {"device_name": "H200"})
    assert check("gpus", subject) == (Status.OK, "1, for the learner: H200")


def test_the_network(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check("network", subject).status is Status.OK

    def refuse(*arguments: object, **keywords: object) -> None:
        raise ConnectionRefusedError("refused")

    with monkeypatch.context() as patch:
        patch.setattr(socket, "create_connection", refuse)
        assert check("network", subject) == (
            Status.FAIL,
            "ConnectionRefusedError: refused: set the loopback interface up",
        )
    monkeypatch.setattr(network, "free_port", refuse)
    assert check("network", subject).status is Status.FAIL


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"suite": "gym", "name": "Pendulum-v1"}, "float32[3] -> float32[1], limit 200, "),
        (
            {"suite": "gym", "name": "Pendulum-v1", "max_episode_steps": 1234},
            "float32[3] -> float32[1], limit 1,234, ",
        ),
        ({"suite": "gym:make", "name": "CartPole-v1"}, "float32[4] -> int64, no known limit, "),
    ],
)
def test_an_environment(subject: Subject, environment: dict[str, Any], expected: str) -> None:
    status, detail = check("environment", of_environment(subject, **environment))
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
def test_an_environment_that_breaks(subject: Subject, how: str, expected: str) -> None:
    assert check("environment", broken(subject, how)) == (Status.FAIL, expected)


def test_an_environment_that_cannot_be_made(subject: Subject) -> None:
    unmade = of_environment(subject, suite="gym", name="Pendulum-v1", kwargs={"gravity": 1})
    status, detail = check("environment", unmade)
    assert status is Status.FAIL
    assert detail.startswith('environment.kwargs: {"gravity": 1} cannot be passed to Pendulum-v1: ')


def test_an_agent_that_cannot_act_there(subject: Subject) -> None:
    assert check("agent", subject).status is Status.OK
    other = Subject(dataclasses.replace(subject.config, agent=SacConfig()), subject.run_dir)
    status, detail = check("agent", other)
    assert status is Status.FAIL
    assert detail.startswith("agent.name: ")


def test_memory(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    replay = footprint.experience_bytes(subject.config.replay.capacity, subject.layout)
    for available, status, expected in (
        (replay - 1, Status.FAIL, "replay.capacity: 1000 transitions may need "),
        (replay + 1, Status.WARN, f"replay {size(replay)}, "),
        (2**40, Status.OK, f"replay {size(replay)}, "),
    ):
        for module in (memory, footprint):
            monkeypatch.setattr(module, "available_bytes", lambda available=available: available)
        found = check("memory", subject)
        assert found.status is status
        assert found.detail.startswith(expected)


def test_a_disk_that_is_full(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check("disk", subject).status is Status.OK
    free = shutil.disk_usage(subject.run_dir.parents[1])
    monkeypatch.setattr(shutil, "disk_usage", lambda path: free._replace(free=0))
    status, detail = check("disk", subject)
    assert status is Status.FAIL
    assert detail.startswith("checkpoints: replay ")
    assert f"; 0.0 MiB free in {subject.run_dir.parents[1]}: lower replay.capacity" in detail
    assert not subject.run_dir.parent.exists(), "nothing is left behind"


def test_checkpoints_that_are_there_make_room(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    free = shutil.disk_usage(subject.run_dir.parents[1])
    monkeypatch.setattr(shutil, "disk_usage", lambda path: free._replace(free=0))
    folder = subject.run_dir / "checkpoints" / "replay" / "2026"
    folder.mkdir(parents=True)
    (folder / "chunks").write_bytes(bytes(100 * 2**20))
    assert check("disk", subject).status is Status.OK


def test_a_directory_that_cannot_be_written(subject: Subject) -> None:
    elsewhere = Subject(subject.config, Path("/proc/nowhere/run"))
    status, detail = check("disk", elsewhere)
    assert status is Status.FAIL
    assert detail.startswith("/proc cannot be written to, ")


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("layout", ["packed", "trajectory"])
def test_a_round_trip(subject: Subject, layout: str, n_step: int) -> None:
    config = with_replay(subject.config, layout=layout, updates_per_env_step=1.0, min_size=500)
    config = dataclasses.replace(config, agent=dataclasses.replace(config.agent, n_step=n_step))
    status, detail = check("replay", Subject(config, subject.run_dir))
    assert status is Status.OK, detail
    assert detail.startswith("10 transitions written, 20 sampled and equal, in ")


def test_a_round_trip_that_changes_something(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    decode = PackedLayout.decode
    changed = lambda self, batch: (stored := decode(self, batch))._replace(reward=stored.reward + 1.0)  # noqa: E731
    monkeypatch.setattr(PackedLayout, "decode", changed)
    status, detail = check("replay", subject)
    assert status is Status.FAIL
    assert detail.startswith("what was sampled is not what was written: ")


def test_a_replay_server_that_takes_nothing(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(round_trip, "_write", lambda *arguments: (_ for _ in ()).throw(TimeoutError("no")))
    assert check("replay", subject) == (Status.FAIL, f"TimeoutError: no: {BY_NAME['replay'].repair}")
