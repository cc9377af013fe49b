"""The best policy is kept, whenever the eval actor is killed and whether or not the disk has room."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from actorlearner.acting.best_policy import BestPolicy
from actorlearner.acting.best_record import BestRecord, EpisodeStatistics, read_best
from actorlearner.config.schema import Config
from actorlearner.records.policy_directory import fresh_path, replace_directory
from actorlearner.records.run_directory import RunDirectory
from actorlearner.variables.container import PolicyVariables, assigner
from tests.support.full_disk import fill, small_disk
from tests.support.saved_variables import saved_variables
from tests.support.training import DQN, make_parts


class Evaluator:
    """What the eval actor does around a BestPolicy, of a run in `path`."""

    def __init__(self, path: Path) -> None:
        self.directory = RunDirectory(path)
        self.parts = make_parts()
        self.restart()

    def restart(self) -> None:
        update = assigner(self.parts.policy_variables, self.parts.train_step)
        self.best = BestPolicy(self.directory, self.parts, Config(agent=DQN), update)

    def consider(self, train_step: int, *returns: float) -> None:
        self.best.consider(
            version(self.parts, train_step), EpisodeStatistics(list(returns), [10] * len(returns))
        )

    def record(self, train_step: int, *returns: float) -> None:
        path = self.directory.metrics("eval")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(json.dumps({"train_step": train_step, "returns": list(returns)}) + "\n")

    def evaluate(self, train_step: int, *returns: float) -> None:
        self.consider(train_step, *returns)
        self.record(train_step, *returns)
        self.best.replace()

    def check(self, train_step: int, *returns: float) -> None:
        """Checks that the facts and the weights are those of a train step."""
        path = self.directory.best_policy
        facts = read_best(path)
        assert facts is not None
        assert (facts.train_step, facts.chosen.returns) == (train_step, list(returns))
        saved = saved_variables(path)
        assert saved["train_step"] == train_step
        sums = [float(np.sum(saved[name])) for name in saved if name.startswith("model_variables/")]
        values = version(self.parts, train_step).values
        assert sorted(sums) == pytest.approx(sorted(float(np.sum(value)) for value in values))


def version(parts: object, train_step: int) -> PolicyVariables:
    random = np.random.default_rng(train_step)
    shapes = [variable.shape for variable in parts.policy_variables]  # type: ignore[attr-defined]
    return PolicyVariables(train_step, [random.normal(size=shape).astype(np.float32) for shape in shapes])


@pytest.fixture(name="evaluator", scope="module")
def _evaluator(tmp_path_factory: pytest.TempPathFactory) -> Evaluator:
    """One whose policy is traced already."""
    evaluator = Evaluator(tmp_path_factory.mktemp("run"))
    evaluator.evaluate(0, -30.0, -10.0)
    evaluator.check(0, -30.0, -10.0)
    return evaluator


@pytest.fixture(autouse=True)
def _first(evaluator: Evaluator) -> None:
    """Every test begins with the best policy of train step 0."""
    shutil.rmtree(evaluator.directory.path)
    evaluator.best._unsaved = None
    evaluator.evaluate(0, -30.0, -10.0)


def test_a_policy_that_is_at_least_as_good_replaces_the_best(evaluator: Evaluator) -> None:
    evaluator.evaluate(10, -21.0, -20.0)
    evaluator.check(0, -30.0, -10.0)
    evaluator.evaluate(20, -15.0, -25.0)
    evaluator.check(20, -15.0, -25.0)
    evaluator.evaluate(30, -5.0, -5.0)
    evaluator.check(30, -5.0, -5.0)
    assert [path.name for path in evaluator.directory.policies.iterdir()] == ["best"]


def test_an_eval_actor_killed_before_recording_keeps_the_best_policy(evaluator: Evaluator) -> None:
    evaluator.consider(10, 5.0)
    evaluator.check(0, -30.0, -10.0)
    evaluator.restart()
    evaluator.check(0, -30.0, -10.0)
    assert not fresh_path(evaluator.directory.best_policy).exists()
    evaluator.evaluate(10, -25.0)  # It went worse this time.
    evaluator.check(0, -30.0, -10.0)


def test_an_eval_actor_killed_after_recording_replaces_the_best_policy(
    evaluator: Evaluator,
) -> None:
    evaluator.consider(10, 5.0)
    evaluator.record(10, 5.0)
    evaluator.restart()
    evaluator.check(10, 5.0)
    evaluator.evaluate(20, 4.0)
    evaluator.check(10, 5.0)


def test_a_replaced_policy_does_not_come_back(
    evaluator: Evaluator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *arguments, **options: None)  # Killed before that.
        evaluator.consider(10, 5.0)
        evaluator.record(10, 5.0)
        evaluator.best.replace()
    assert read_best(fresh_path(evaluator.directory.best_policy)) == BestRecord(
        0, EpisodeStatistics([-30.0, -10.0], [10, 10])
    )
    evaluator.restart()
    evaluator.check(10, 5.0)
    assert [path.name for path in evaluator.directory.policies.iterdir()] == ["best"]


def test_an_incomplete_policy_is_discarded(evaluator: Evaluator) -> None:
    evaluator.consider(10, 5.0)
    evaluator.record(10, 5.0)
    facts = fresh_path(evaluator.directory.best_policy) / "assets.extra" / "best.json"
    facts.write_text(facts.read_text()[:20])
    evaluator.restart()
    evaluator.check(0, -30.0, -10.0)


def test_a_replacement_interrupted_between_two_renames_is_undone(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actorlearner.records.policy_directory._exchange", lambda one, other: False)
    evaluator.evaluate(10, 5.0)
    evaluator.check(10, 5.0)
    best = evaluator.directory.best_policy
    best.rename(best.with_name(".best.old"))  # Killed between two renames.
    evaluator.restart()
    evaluator.check(10, 5.0)


def test_a_full_disk_delays_the_best_policy_until_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path, mebibytes=4) as disk:
        evaluator = Evaluator(disk / "run")
        evaluator.evaluate(0, -30.0)
        filler = fill(disk)
        evaluator.consider(10, 5.0)
        evaluator.best.replace()
        evaluator.check(0, -30.0)
        evaluator.consider(20, 1.0)
        evaluator.best.replace()
        evaluator.check(0, -30.0)
        fresh = BestRecord(0, EpisodeStatistics([-30.0], [10]), EpisodeStatistics([-31.0, -29.0], [10, 10]))
        assert not evaluator.best.record_fresh(fresh)
        filler.unlink()
        assert evaluator.best.record_fresh(fresh)
        assert evaluator.best.record == fresh
        lines = evaluator.directory.metrics("best").read_text().splitlines()
        assert [json.loads(line)["average_return"] for line in lines] == [-30.0]
        evaluator.evaluate(30, 2.0)
        evaluator.check(10, 5.0)


def test_a_directory_is_replaced_where_there_was_none(tmp_path: Path) -> None:
    target = tmp_path / "target"
    fresh_path(target).mkdir()
    (fresh_path(target) / "file").touch()
    replace_directory(target)
    assert [path.name for path in tmp_path.rglob("*")] == ["target", "file"]
