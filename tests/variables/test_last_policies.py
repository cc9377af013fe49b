"""The end of a run: its last policies are delivered, and outlast a replay server that is started again."""

import contextlib
import dataclasses
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import reverb
import tensorflow as tf

from actorlearner.agents.make import make_agent
from actorlearner.config.schema import Config
from actorlearner.environments.specs import load_specs
from actorlearner.learning import chief_outputs
from actorlearner.learning.chief_outputs import ChiefOutputs
from actorlearner.process.stop import Stop
from actorlearner.records.run_directory import RunDirectory
from actorlearner.records.seal import seal, seal_path
from actorlearner.replay.identity import identity_table, run_id_of
from actorlearner.replay.reverb_calls import UNREACHABLE
from actorlearner.replay.status import ReplayStatus
from actorlearner.roles import replay_server
from actorlearner.variables import last_policies as last_policies_module
from actorlearner.variables import publisher as publisher_module
from actorlearner.variables.container import (
    EvaluationRequest,
    PolicyOrder,
    PolicyVariables,
    RunEnd,
    VariableContainer,
    variable_tables,
)
from actorlearner.variables.last_policies import LastPolicies
from tests.support.processes import wait_for
from tests.support.training import make_parts

TIMEOUT_S = 10
LAST = 30


def version(train_step: int, generation: int = 0) -> PolicyVariables:
    return PolicyVariables(train_step, [np.full(2, train_step, np.float32)], generation)


@pytest.fixture(name="server")
def _server(free_port: int) -> Iterator[VariableContainer]:
    server = reverb.Server(variable_tables([tf.Variable(tf.zeros([2]))]), free_port)
    yield VariableContainer(server.localhost_client())
    server.stop()


class Saving:
    """Counts the checkpoints that a server is asked for, and refuses some."""

    def __init__(self, *refused: bool) -> None:
        self.count = 0
        self._refused = list(refused)

    def __call__(self) -> bool:
        self.count += 1
        return not (self._refused and self._refused.pop(0))


def last_policies(container: VariableContainer, save: Callable[[], bool]) -> LastPolicies:
    return LastPolicies(container._client, LAST, save)


def test_the_end_is_confirmed_once_it_is_saved(
    server: VariableContainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_policies_module, "_RETRY_S", 0.0)
    save = Saving(True, False)
    policies = last_policies(server, save)
    policies.save_once_published()
    server.push(version(LAST))
    policies.save_once_published()
    assert save.count == 0  # The learner may have more to publish.
    server.push_end(RunEnd(PolicyOrder(0, LAST)))
    policies.save_once_published()
    assert server.end(TIMEOUT_S) == RunEnd(PolicyOrder(0, LAST), saved=False)  # The disk was full.
    policies.save_once_published()
    assert server.end(TIMEOUT_S) == RunEnd(PolicyOrder(0, LAST), saved=True)
    policies.save_once_published()
    assert save.count == 2


def test_an_end_without_its_policies_is_not_confirmed(server: VariableContainer) -> None:
    """The learner announced it to a server that was started again, and does not know that yet."""
    save = Saving()
    policies = last_policies(server, save)
    server.push_end(RunEnd(PolicyOrder(1, LAST)))
    server.push(version(LAST, generation=0))
    policies.save_once_published()
    assert save.count == 0


@pytest.mark.parametrize(
    ("train_step", "rolls_back", "kept"), [(LAST - 1, False, 0), (LAST, False, 1), (LAST, True, 0)]
)
def test_only_the_last_policies_survive_a_restart(
    server: VariableContainer, train_step: int, rolls_back: bool, kept: int
) -> None:
    server.push(version(train_step))
    server.push_evaluation(EvaluationRequest(version(train_step), env_steps=1))
    last_policies(server, Saving()).remove_outdated(learner_rolls_back=rolls_back)
    assert server.status(TIMEOUT_S) == (kept, kept)


@contextlib.contextmanager
def served(config: Config, path: Path, port: int) -> Iterator[VariableContainer]:
    """Runs the replay server's role on a thread."""
    directory, stop = RunDirectory(path), Stop()
    directory.prepare(config)
    role = threading.Thread(target=lambda: replay_server.run(config, directory, stop, port=port))
    role.start()
    client = reverb.Client(f"localhost:{port}")

    def answers() -> bool:
        with contextlib.suppress(*UNREACHABLE):
            tables = client.server_info(1)
            # Roles join only then; before, the server may still clear the container.
            return tables[f"run-{run_id_of(tables)}"].current_size > 0
        return False

    try:
        wait_for(lambda: answers() or not role.is_alive(), "the replay server")
        assert role.is_alive()
        yield VariableContainer(client)
    finally:
        stop.request()
        role.join()


def test_a_server_that_is_killed_after_the_end_still_has_the_last_policies(
    small_config: Config, tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No learner is left that could publish them again."""
    monkeypatch.setattr(replay_server, "limit_tensorflow", lambda threads: None)  # Too late in this process.
    run, killed = tmp_path / "run", tmp_path / "killed"
    variables = make_agent(small_config, load_specs(small_config.environment)).policy_variables
    values = [np.full(variable.shape, 7, variable.dtype.as_numpy_dtype) for variable in variables]
    last = PolicyVariables(small_config.learn.train_steps, values)
    with served(small_config, run, free_port) as container:
        container.push_evaluation(EvaluationRequest(last, env_steps=5))
        container.push(last)
        container.push_end(RunEnd(last.order))
        wait_for(lambda: container.end(TIMEOUT_S) == RunEnd(last.order, saved=True), "the end to be saved")
        shutil.copytree(run, killed)  # Without what the server saves when it is stopped.
    with served(small_config, killed, free_port) as container:
        wait_for(lambda: container.end(TIMEOUT_S) == RunEnd(last.order, saved=True), "the end again")
        assert container.pull().order == last.order
        assert container.next_evaluation().env_steps == 5
    learner = RunDirectory(killed).learner_checkpoints
    learner.mkdir(parents=True)
    (learner / "ckpt-0.index").write_bytes(b"")
    seal(seal_path(learner, "ckpt-0"), [learner / "ckpt-0.index"], {"train_step": 0})
    with served(small_config, killed, free_port) as container:
        wait_for(lambda: container.status(TIMEOUT_S) == (0, 0), "the policies to be forgotten", 20)


class NoReplay:
    """A replay of which nothing is known."""

    def status(self, timeout_s: int) -> ReplayStatus:
        return ReplayStatus(0, 0, 0)

    def sizes(self, timeout_s: int) -> dict[str, int]:
        return {"": 0}


class Polled(Stop):
    """A stop that is waited for; `often` is set once that has happened twice."""

    def __init__(self) -> None:
        super().__init__()
        self.often = threading.Event()
        self._left = 2

    def wait(self, timeout_s: float) -> bool:
        self._left -= timeout_s > 0
        if self._left <= 0:
            self.often.set()
        return super().wait(timeout_s)


@dataclasses.dataclass
class EndingLearner:
    """A learner's outputs, and their `end` on a thread, with a replay server that comes and goes."""

    outputs: ChiefOutputs
    stop: Polled
    ending: threading.Thread
    serve: Callable[[], reverb.Server]


@pytest.fixture(name="learner")
def _learner(
    small_config: Config, tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch
) -> Iterator[EndingLearner]:
    """It has published its last policies, and the replay server is away."""
    monkeypatch.setattr(chief_outputs, "_PUBLISH_TIMEOUT_S", 0.1)
    monkeypatch.setattr(publisher_module, "_TIMEOUT_S", 1)
    monkeypatch.setattr(publisher_module, "_DELIVERED_TIMEOUT_S", 1)
    directory, parts, stop = RunDirectory(tmp_path), make_parts(), Polled()
    directory.prepare(small_config)

    def serve() -> reverb.Server:
        tables = [*variable_tables(parts.policy_variables), identity_table(str(directory.run_id))]
        return reverb.Server(tables, free_port)

    server = serve()
    others = set(threading.enumerate())
    outputs = ChiefOutputs(directory, parts, small_config, stop)
    outputs.take_over(reverb.Client(f"localhost:{free_port}"), NoReplay())
    server.stop()
    parts.train_step.assign(LAST)
    outputs._publisher.queue([outputs._publisher.make_request(env_steps=0)])
    outputs._publisher.publish()
    ending = threading.Thread(target=lambda: outputs.end(stopped=False))
    ending.start()
    yield EndingLearner(outputs, stop, ending, serve)
    outputs._publisher._container = None  # The next call on its thread fails, and ends it.
    for thread in set(threading.enumerate()) - others:
        if thread.name == "publisher":
            thread.join(60)


def test_the_learner_ends_once_its_last_policies_are_delivered(learner: EndingLearner) -> None:
    """However long the replay server is away."""
    wait_for(lambda: learner.stop.often.is_set() or not learner.ending.is_alive(), "the learner to wait")
    assert learner.ending.is_alive()
    server = learner.serve()
    policies = LastPolicies(server.localhost_client(), LAST, lambda: True)

    def ended() -> bool:
        policies.save_once_published()
        return not learner.ending.is_alive()

    wait_for(ended, "the learner to end")
    container = VariableContainer(server.localhost_client())
    assert container.pull().order == PolicyOrder(0, LAST)
    assert container.next_evaluation().version.train_step == LAST
    server.stop()


def test_a_stop_ends_the_wait_for_the_last_delivery(learner: EndingLearner) -> None:
    assert learner.stop.often.wait(60)
    learner.stop.request()
    learner.ending.join(60)
    assert not learner.ending.is_alive()
