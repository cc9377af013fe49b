"""The last checkpoint of a replay server that somebody has started by hand."""

import logging
import signal
import threading

import pytest

from actorlearner.process.stop import Stop
from actorlearner.roles import replay_server


@pytest.mark.parametrize("gives_up", [False, True])
def test_the_last_save_takes_its_time_unless_ctrl_c_gives_up(
    gives_up: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(replay_server, "_SAVING_NOTICE_S", 0.01)
    stop, allowed, saved = Stop(), threading.Event(), threading.Event()
    stop._handle(signal.SIGINT, None)  # What has ended the role.

    class Person(logging.Handler):
        """Reads the first line, and presses Ctrl-C or waits."""

        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith("saving replay; Ctrl-C gives up"):
                if gives_up:
                    stop._handle(signal.SIGINT, None)
                else:
                    allowed.set()

    def save() -> bool:
        assert allowed.wait(60)
        saved.set()
        return True

    person = Person()
    replay_server._log.addHandler(person)
    replay_server._log.setLevel(logging.INFO)
    try:
        assert replay_server.save_last(save, stop) is not gives_up
    finally:
        replay_server._log.removeHandler(person)
        allowed.set()
    assert saved.is_set() or gives_up
    assert any("replay was not saved" in line for line in caplog.messages) is gives_up
