"""Fixtures for tests of complete processes: they start commands and check that none is left."""

import os
import signal
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from actorlearner.network.private_network import PrivateNetwork
from tests.support import compose
from tests.support.processes import MARK_VARIABLE, REPOSITORY, Command, marked_processes

_IMAGE = "actorlearner-test"


@pytest.fixture(name="image", scope="session")
def _image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The image of this checkout."""
    missing = compose.missing()
    if missing:
        pytest.skip(f"containers are not tested: {missing}")
    compose.build(_IMAGE, tmp_path_factory.mktemp("image"))
    return _IMAGE


@pytest.fixture(name="mark")
def _mark() -> str:
    return uuid.uuid4().hex


@pytest.fixture(name="start")
def _start(mark: str, tmp_path: Path) -> Iterator[Callable[..., Command]]:
    """Starts commands in an empty directory, with more variables in their environment if these are given.

    With `fresh`, in a new interpreter (see `Command`).

    Afterwards, no process of theirs may be left. Their temporary files are in its folder `temporary`.
    """
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = os.environ | {
        MARK_VARIABLE: mark,
        "PYTHONPATH": str(REPOSITORY),
        "TMPDIR": str(temporary),
        "COLUMNS": "80",
    }
    commands: list[Command] = []

    def start(
        *arguments: str, network: PrivateNetwork | None = None, fresh: bool = False, **variables: str
    ) -> Command:
        commands.append(Command(arguments, tmp_path, environment | variables, network, fresh))
        return commands[-1]

    yield start
    left = marked_processes(mark)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    for command in commands:
        command.process.communicate()
    assert not left, f"processes {left} were left behind"
