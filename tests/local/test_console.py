"""The console of a run: it goes on when nobody reads what it prints."""

import os
import sys

import pytest

from actorlearner.local.train import _console
from actorlearner.records.disk import robust_stream


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_output_without_a_reader_is_dropped(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C also ends the tee of `actorlearner local | tee log`."""
    reader, writer = os.pipe()
    stream = robust_stream(writer)
    monkeypatch.setattr(sys, name, stream)
    console = _console(stderr=name == "stderr")
    console.print("is read")
    assert os.read(reader, 100) == b"is read\n"
    os.close(reader)
    console.print("is lost")
    console.print("is lost as well")
    stream.close()
    os.close(writer)
