"""Defaults from the number of cores."""

import pytest

from actorlearner.agents.configuration import load_config
from actorlearner.config.resolved import fingerprint
from actorlearner.config.schema import CollectConfig
from actorlearner.process import cores as machine


@pytest.mark.parametrize(
    ("cores", "actors", "environments"), [(1, 1, 8), (2, 1, 8), (3, 1, 8), (4, 2, 4), (6, 3, 3), (64, 8, 1)]
)
def test_actors_and_environments_from_the_cores(
    monkeypatch: pytest.MonkeyPatch, cores: int, actors: int, environments: int
) -> None:
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda pid: set(range(cores)))
    config = CollectConfig()
    assert machine.cores() == cores
    assert machine.collect_actors(config) == actors
    assert machine.envs_per_actor(config) == environments


@pytest.mark.parametrize(
    ("actors", "environments", "expected"),
    [(3, None, (3, 3)), (None, 2, (2, 2)), (5, 7, (5, 7)), (20, None, (20, 1))],
)
def test_configured_numbers_win(
    monkeypatch: pytest.MonkeyPatch, actors: int | None, environments: int | None, expected: tuple[int, int]
) -> None:
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda pid: set(range(4)))
    config = CollectConfig(actors=actors, envs_per_actor=environments)
    assert (machine.collect_actors(config), machine.envs_per_actor(config)) == expected


def test_the_description(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda pid: set(range(4)))
    assert (
        machine.describe(CollectConfig())
        == "4 cores: 2 collect actors with 4 environments each, learner on 4 threads"
    )
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda pid: {0})
    assert (
        machine.describe(CollectConfig(envs_per_actor=1))
        == "1 core: 1 collect actor with 1 environment, learner on 1 thread"
    )


def test_the_fingerprint_does_not_depend_on_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    prints = set()
    for cores in (1, 64):
        monkeypatch.setattr(machine.os, "sched_getaffinity", lambda pid, cores=cores: set(range(cores)))
        prints.add(fingerprint(load_config("sac_halfcheetah", [])))
    assert len(prints) == 1
