"""A real replay server reports which learner published last: at once, or once it answers."""

import threading

import numpy as np
import pytest
import reverb
import tensorflow as tf

from actorlearner.learning import chief_outputs
from actorlearner.learning.chief_outputs import published_generation
from actorlearner.process.stop import Stop
from actorlearner.variables.container import PolicyVariables, VariableContainer, variable_tables
from tests.support.processes import wait_for


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chief_outputs, "_STATUS_TIMEOUT_S", 1)


def serve(port: int) -> reverb.Server:
    return reverb.Server(variable_tables([tf.Variable(tf.zeros([2]))]), port)


def client_of(port: int) -> reverb.Client:
    return reverb.Client(f"localhost:{port}")


def test_the_generation_of_the_newest_version(free_port: int) -> None:
    server = serve(free_port)
    assert published_generation(client_of(free_port), Stop()) == -1
    VariableContainer(client_of(free_port)).push(PolicyVariables(7, [np.zeros(2, np.float32)], 3))
    assert published_generation(client_of(free_port), Stop()) == 3
    server.stop()


def test_it_waits_until_the_server_answers(free_port: int) -> None:
    reported: list[int] = []
    polled = threading.Event()

    class Polled(Stop):
        def wait(self, timeout_s: float) -> bool:
            polled.set()  # The server did not answer.
            return super().wait(timeout_s)

    thread = threading.Thread(
        target=lambda: reported.append(published_generation(client_of(free_port), Polled()))
    )
    thread.start()
    assert polled.wait(60)
    assert not reported
    server = serve(free_port)
    wait_for(lambda: bool(reported), "an answer")
    assert reported == [-1]
    thread.join()
    server.stop()


def test_a_stop_ends_the_wait(free_port: int) -> None:
    stop = Stop()
    stop.request()
    assert published_generation(client_of(free_port), stop) == -1
