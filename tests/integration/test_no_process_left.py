"""The check after every test of complete processes: it finds leftover processes, including grandchildren."""

import subprocess
import sys

import pytest

from tests.support.processes import marked_processes, wait_for

pytestmark = pytest.mark.integration

_PARENT = """
import subprocess, sys
child = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"
subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE)
sys.stdin.read()
"""


def test_a_process_and_its_child_are_seen_until_they_end_and_by_their_own_test_alone(mark: str) -> None:
    environment = {"ACTORLEARNER_TEST_MARK": mark}
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    # The child itself prints its process ID: Linux shows an environment only some time after the start.
    child = int(parent.stdout.readline())
    assert set(marked_processes(mark)) == {parent.pid, child}
    assert marked_processes("another mark") == []
    parent.communicate()  # Closes its standard input, at which it ends, and its child after it.
    wait_for(lambda: not marked_processes(mark), "the end of both")
