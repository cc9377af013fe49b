"""A failed run is reported by its error, and not by an incident that was printed before it."""

import sys
from collections.abc import Sequence

import pytest

from actorlearner.errors import ConfigurationError, RunError
from actorlearner.local import local_command
from actorlearner.local.local_command import LocalCommand

_INCIDENT = "learner died: killed by signal 9; starting it again in 1 s (1)"


def _finish(monkeypatch: pytest.MonkeyPatch, code: int, *lines: str) -> None:
    """Finishes a process that prints these lines on standard error."""
    script = f"import sys; print(*{lines!r}, sep='\\n', file=sys.stderr); sys.exit({code})"
    command: Sequence[str] = (sys.executable, "-c", script)
    monkeypatch.setattr(local_command, "module_command", lambda *arguments: command)
    LocalCommand("--quiet").finish()


def test_the_error_of_a_failed_run_is_distinguished_from_incidents(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunError) as failed:
        _finish(monkeypatch, 1, _INCIDENT, "actorlearner: error: learner: the loss is NaN", "last", "lines")
    assert str(failed.value) == "learner: the loss is NaN"
    assert failed.value.details == ("last", "lines")


def test_an_incident_is_no_problem_of_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = ("seed: -1 is out of range", "learn.batch_size: 0 is out of range")
    with pytest.raises(ConfigurationError) as refused:
        _finish(monkeypatch, 2, _INCIDENT, *(f"actorlearner: error: {problem}" for problem in problems))
    assert refused.value.problems == problems


def test_a_crash_without_a_message_has_its_traceback_as_details(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunError) as failed:
        _finish(monkeypatch, 1, "Traceback (most recent call last):", "ValueError")
    assert str(failed.value) == "the run ended with exit code 1"
    assert failed.value.details == ("Traceback (most recent call last):", "ValueError")


@pytest.mark.parametrize("code", [0, 130, 143])
def test_incidents_of_a_run_that_ended_are_no_error(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    _finish(monkeypatch, code, _INCIDENT)
