"""Environments in processes of their own."""

import contextlib
import dataclasses
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import gym
import numpy as np
import psutil
import pytest

from actorlearner.config.schema import EnvironmentConfig
from actorlearner.environments import process_environment
from actorlearner.environments.batch import EnvironmentBatch
from actorlearner.environments.guarded import load_guarded
from actorlearner.environments.process_environment import ProcessEnvironment
from actorlearner.errors import ConfigurationError, RunError
from actorlearner.process.tensorflow_setup import limit_children
from tests.support.processes import wait_for

CARTPOLE = EnvironmentConfig(suite="gym", name="CartPole-v1")
OWN = EnvironmentConfig(suite="tests.environments.test_process_environment:Meeting", name="")


class Meeting(gym.Env):
    """Its env steps end only after another environment has begun one; the action 1 kills the process."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (1,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, folder: str = "", me: int = 0, others: int = 0) -> None:
        self._folder, self._me, self._others = folder, me, others

    def reset(self, *, seed=None):
        return np.zeros(1, np.float32)

    def step(self, action):
        if action == 1:
            os.kill(os.getpid(), signal.SIGSEGV)
        if self._folder:
            open(os.path.join(self._folder, str(os.getpid())), "w").close()
            wait_for(lambda: len(os.listdir(self._folder)) > self._others, "the other environment's env step")
        return np.zeros(1, np.float32), 1.0, False, {}


class Imported(gym.Env):
    """Observes whether its process has imported TensorFlow."""

    observation_space = gym.spaces.Box(0.0, 1.0, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None):
        return np.array(["tensorflow" in sys.modules], np.float32)


def guarded(config, environment=0, own_process=True):
    return load_guarded(config, 5, "collect-actor", 0, environment, own_process=own_process)


def closing(*environments):
    """Closes environments even if the test fails: pytest would wait for their processes forever."""
    return contextlib.closing(EnvironmentBatch(list(environments)))


def children():
    """The processes of environments."""
    found = psutil.Process().children(recursive=True)
    return [child for child in found if "spawn_main" in " ".join(child.cmdline())]


def test_episodes_are_those_of_an_environment_in_the_same_process():
    with closing(guarded(CARTPOLE, own_process=False)) as here, closing(guarded(CARTPOLE)) as there:
        np.testing.assert_array_equal(here.observations, there.observations)
        for number in range(40):
            action = np.array([number // 3 % 2])
            ours, theirs = here.step(action, 0), there.step(action, 0)
            for own, other in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(own, other)
        assert len(children()) == 1
    assert not children()


def test_the_process_imports_no_tensorflow_which_takes_seconds_and_memory():
    suite = OWN.suite.replace("Meeting", "Imported")
    with closing(guarded(dataclasses.replace(OWN, suite=suite))) as batch:
        assert batch.observations.tolist() == [[0.0]]


def test_all_step_at_once_and_a_segmentation_fault_costs_one_episode(tmp_path):
    config = dataclasses.replace(OWN, kwargs={"folder": str(tmp_path), "others": 1})
    with closing(guarded(config, 0), guarded(config, 1)) as batch:
        assert batch.step(np.array([0, 0]), 0).valid.all(), "each waits for the other"
        # A signal to the actor and all its processes ends no environment.
        processes = children()
        assert len(processes) == 2
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for process in processes:
                process.send_signal(number)
            assert batch.step(np.array([0, 0]), 0).valid.all()
        steps = batch.step(np.array([1, 0]), 0)
        assert steps.valid.tolist() == [False, True]
        assert steps.last.tolist() == [True, False]
        assert batch.faults == 1
        assert batch.step(np.array([0, 0]), 0).valid.all()
    assert not any(process.is_running() for process in processes)


class Leaving(Meeting):
    """Closes only after another environment has begun to close."""

    def close(self):
        for name in ("begun", "ended"):
            open(os.path.join(self._folder, f"{name} {os.getpid()}"), "w").close()
            wait_for(
                lambda: len(os.listdir(self._folder)) > self._others, "the other environment, which closes"
            )


def test_all_close_at_once(tmp_path, monkeypatch):
    """Local mode kills an actor that takes long to close."""
    monkeypatch.setattr(process_environment, "_END_S", 60.0)
    suite = OWN.suite.replace("Meeting", "Leaving")
    config = dataclasses.replace(OWN, suite=suite, kwargs={"folder": str(tmp_path), "others": 1})
    with closing(guarded(config, 0), guarded(config, 1)):
        pass
    assert sorted(path.name.split()[0] for path in tmp_path.iterdir()) == ["begun"] * 2 + ["ended"] * 2


class Clumsy(Meeting):
    """Starts a process, and does not end it: closing fails."""

    def reset(self, *, seed=None):
        process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
        process.start()
        open(os.path.join(self._folder, str(process.pid)), "w").close()
        return super().reset()

    def close(self):
        raise OSError("no such window")


def test_no_process_is_left_of_an_environment_whose_close_raises(tmp_path):
    config = dataclasses.replace(
        OWN, suite=OWN.suite.replace("Meeting", "Clumsy"), kwargs={"folder": str(tmp_path)}
    )
    ProcessEnvironment(config, 0, "collect-actor", 0).close()
    started = [int(path.name) for path in tmp_path.iterdir()]
    assert started
    wait_for(lambda: not any(map(_runs, started)), "the end of its processes", timeout_s=60.0)


def _runs(process):
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Aborting(Meeting):
    """Crashes before it is made."""

    def __init__(self):
        os.abort()


def test_a_crash_in_a_constructor_is_reported_with_what_has_died(monkeypatch):
    monkeypatch.setattr(process_environment, "_END_S", 60.0)
    config = dataclasses.replace(OWN, suite=OWN.suite.replace("Meeting", "Aborting"))
    with pytest.raises(RunError, match=r"^the environment's process has died, exit code -6"):
        ProcessEnvironment(config, 0, "collect-actor", 0)


def test_constructor_errors_are_refused_as_in_the_same_process():
    config = dataclasses.replace(OWN, kwargs={"no_such": 1})
    with pytest.raises(ConfigurationError, match="no_such"):
        ProcessEnvironment(config, 0, "collect-actor", 0)


class Simulating(gym.Env):
    """Starts a simulator and a process, and reports TensorFlow's threads."""

    observation_space = gym.spaces.Box(-100.0, 100.0, (3,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None):
        simulator = subprocess.Popen(["sleep", "60"])
        simulator.terminate()
        process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
        process.start()
        process.terminate()
        process.join(10)
        threads = float(os.environ["TF_NUM_INTRAOP_THREADS"])
        return np.array([simulator.wait(10), process.exitcode, threads], np.float32)


def test_an_environment_may_start_processes_and_has_the_threads_of_its_actor(monkeypatch):
    for name in ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.setenv(name, "")  # Restored at the end.
    limit_children(threads=3, gpus=False)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "-1"
    suite = "tests.environments.test_process_environment:Simulating"
    config = EnvironmentConfig(suite=suite, name="")
    with contextlib.closing(ProcessEnvironment(config, 0, "collect-actor", 0)) as environment:
        assert environment.reset().tolist() == [-signal.SIGTERM, -signal.SIGTERM, 3]


class Falling(Meeting):
    """Fails in its env steps."""

    def step(self, action):
        raise ValueError("fell over")


def test_the_log_of_the_actor_names_the_line_of_the_environment_that_failed(caplog):
    environment = guarded(dataclasses.replace(OWN, suite=OWN.suite.replace("Meeting", "Falling")))
    with closing(environment):
        assert environment.step(np.array(0)) is None
    assert "in step\n    raise ValueError" in caplog.text
