"""The grouping of runs, and the names of the groups."""

from pathlib import Path

import pytest

from actorlearner.inspect.plot.groups import Comparison, comparisons
from actorlearner.inspect.plot.runs import read_runs
from tests.support.recorded_run import trained_run


def compared(tmp_path: Path, *overrides: tuple[str, ...], config: str = "sac_pendulum") -> list[Comparison]:
    runs = [trained_run(tmp_path / str(i), *each, config=config) for i, each in enumerate(overrides)]
    return comparisons(read_runs(runs, pytest.fail))


def labels(comparison: Comparison) -> list[str]:
    return [group.label for group in comparison.groups]


def test_seeds_are_one_group(tmp_path: Path) -> None:
    (comparison,) = compared(tmp_path, ("seed=0",), ("seed=1",), ("seed=2",))
    assert comparison.title == "sac on Pendulum-v1"
    assert labels(comparison) == ["3 seeds"]
    assert [run.config.seed for run in comparison.groups[0].runs] == [0, 1, 2]


def test_groups_are_called_by_what_differs(tmp_path: Path) -> None:
    layout = "replay.layout=trajectory"
    (comparison,) = compared(tmp_path, ("seed=0",), (layout, "seed=4"), ("seed=1",), ("seed=1",))
    assert labels(comparison) == [
        "replay.layout: packed (3 runs of 2 seeds)",
        "replay.layout: trajectory (seed 4)",
    ]


def test_numbers_have_commas(tmp_path: Path) -> None:
    (comparison,) = compared(tmp_path, ("learn.train_steps=20000",), ("collect.actors=2",))
    assert labels(comparison) == [
        "collect.actors: null, learn.train_steps: 20,000 (seed 0)",
        "collect.actors: 2, learn.train_steps: 10,000 (seed 0)",
    ]


def test_of_many_differences_a_few_are_named(tmp_path: Path) -> None:
    many = (
        "agent.gamma=0.5",
        "agent.n_step=2",
        "replay.capacity=5000",
        "learn.batch_size=8",
        "evaluate.episodes=1",
    )
    (comparison,) = compared(tmp_path, (), many)
    assert labels(comparison) == [
        "agent.gamma: 0.99, agent.n_step: 1, replay.capacity: 100,000 and 2 more keys (seed 0)",
        "agent.gamma: 0.5, agent.n_step: 2, replay.capacity: 5,000 and 2 more keys (seed 0)",
    ]


def test_as_many_differences_are_named_as_tell_groups_apart(tmp_path: Path) -> None:
    many = ("agent.gamma=0.5", "agent.n_step=2", "replay.capacity=5000")
    (comparison,) = compared(tmp_path, (), many, (*many, "learn.batch_size=8"))
    assert labels(comparison)[1:] == [
        "agent.gamma: 0.5, agent.n_step: 2, replay.capacity: 5,000, learn.batch_size: 256 (seed 0)",
        "agent.gamma: 0.5, agent.n_step: 2, replay.capacity: 5,000, learn.batch_size: 8 (seed 0)",
    ]


def test_long_values_that_differ_at_their_end_are_told_apart(tmp_path: Path) -> None:
    lists = ["collect.actor_kwargs.netlist=[" + "a, " * 100 + last + "]" for last in "bc"]
    (comparison,) = compared(tmp_path, (lists[0],), (lists[1],))
    assert len(labels(comparison)) == 2
    assert all(label.startswith("collect.actor_kwargs") for label in labels(comparison))


def test_keys_that_another_algorithm_lacks_go_without_saying(tmp_path: Path) -> None:
    runs = [trained_run(tmp_path / name, config=name) for name in ("sac_pendulum", "td3_pendulum")]
    (comparison,) = comparisons(read_runs(runs, pytest.fail))
    assert comparison.title == "Pendulum-v1"
    assert all(label.startswith("agent.name: ") and "absent" not in label for label in labels(comparison))


def test_environments_are_compared_separately(tmp_path: Path) -> None:
    pendulum = [trained_run(tmp_path / f"p{seed}", f"seed={seed}") for seed in (0, 1)]
    cheetah = trained_run(tmp_path / "c", config="sac_halfcheetah")
    first, second = comparisons(read_runs([pendulum[0], cheetah, pendulum[1]], pytest.fail))
    assert (first.title, labels(first)) == ("sac on Pendulum-v1", ["2 seeds"])
    assert (second.title, labels(second)) == ("sac on HalfCheetahBulletEnv-v0", ["seed 0"])
