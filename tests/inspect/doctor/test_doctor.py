"""The sequence of checks, each in a process that may die, and the printed lines."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from actorlearner.config.schema import Config, EnvironmentConfig
from actorlearner.inspect.doctor.check import Check, CheckedExperiment, Result, Status, fail, ok, warn
from actorlearner.inspect.doctor.run_checks import CHECKS, examine, line
from actorlearner.inspect.doctor.worker import Worker

BY_NAME = {check.name: check for check in CHECKS}


def never(experiment: CheckedExperiment) -> Result:
    raise AssertionError


def check(name: str, *needs: str) -> Check:
    return Check(name, never, "do something", needs=needs)


def test_checks_that_depend_on_a_failed_check_are_skipped() -> None:
    checks = [check("a"), check("b"), check("c", "a"), check("d", "b"), check("e", "d", "a"), check("f", "c")]
    results = {"a": warn("so so"), "b": fail("broken"), "c": ok("good"), "f": ok("good")}
    found = {check.name: result for check, result in examine(checks, lambda check: results[check.name])}
    assert found == results | {
        "d": fail("not checked: repair b first"),
        "e": fail("not checked: repair d first"),
    }


def test_every_need_comes_before_what_needs_it() -> None:
    seen: set[str] = set()
    for made in CHECKS:
        assert seen.issuperset(made.needs)
        seen.add(made.name)
    assert len(seen) == len(CHECKS)


def test_lines() -> None:
    assert line("disk", ok("72 GiB free")) == "ok   disk        72 GiB free"
    assert line("environment", fail("it\nbroke")) == "FAIL environment it broke"
    first, *others = line("gpus", warn("none " * 30)).splitlines()
    assert first.startswith("warn gpus        none none")
    assert others
    assert all(other.startswith(" " * 17 + "none") for other in others)
    assert max(map(len, [first, *others])) <= 80


@pytest.fixture
def worker(small_config: Config, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Worker]:
    """Checks an environment that breaks in the way of the test's parameter."""
    environment = EnvironmentConfig(
        suite="tests.support.faulty:make_broken", name="", kwargs={"how": request.param}
    )
    config = dataclasses.replace(small_config, environment=environment)
    worker = Worker(CheckedExperiment(config, tmp_path), str(tmp_path))
    yield worker
    worker.close()


@pytest.mark.parametrize("worker", ["abort"], indirect=True)
def test_a_process_that_dies_is_replaced(worker: Worker) -> None:
    assert worker.make(BY_NAME["platform"]).status is Status.OK
    died = worker.make(BY_NAME["environment"])
    assert died == fail("its process was killed by signal 6 (Aborted): make and step it by itself")
    assert worker.make(BY_NAME["platform"]).status is Status.OK


@pytest.mark.parametrize("worker", ["hang"], indirect=True)
def test_a_check_that_hangs_is_ended(worker: Worker) -> None:
    impatient = dataclasses.replace(BY_NAME["environment"], deadline_s=0.1)
    assert worker.make(impatient) == fail("no result within 0.1 s: make and step it by itself")
    assert worker.make(BY_NAME["platform"]).status is Status.OK
