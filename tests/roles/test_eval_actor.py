"""The eval actor evaluates every new policy once, and ends at once if evaluation is off."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import reverb

from actorlearner.acting.evaluation_recorder import EvaluationRecorder
from actorlearner.agents.make import make_agent
from actorlearner.config.schema import Config, EvaluateConfig, LearnConfig
from actorlearner.environments.specs import load_specs
from actorlearner.process.stop import Stop
from actorlearner.records.metrics import read_records
from actorlearner.records.run_directory import RunDirectory
from actorlearner.replay.experience_table import experience_table
from actorlearner.replay.identity import announce, identity_table
from actorlearner.replay.layout import make_layout
from actorlearner.roles import eval_actor
from actorlearner.variables.container import (
    EvaluationRequest,
    PolicyVariables,
    VariableContainer,
    variable_tables,
)


def test_without_evaluation_the_role_ends_at_once(
    small_config: Config, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = dataclasses.replace(small_config, evaluate=EvaluateConfig(interval=None))
    with caplog.at_level("INFO"):
        eval_actor.run(config, RunDirectory(tmp_path), Stop(), replay_address=("nowhere:1",))
    assert caplog.messages == ["evaluation is off (evaluate.interval: null)"]


Evaluate = Callable[..., RunDirectory]


@pytest.fixture(name="evaluate")
def _evaluate(
    small_config: Config, tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Evaluate]:
    """A function that runs an eval actor whose replay server has versions of these generations and steps."""
    monkeypatch.setattr(eval_actor, "limit_tensorflow", lambda threads: None)  # TensorFlow has started here.
    config = dataclasses.replace(
        small_config, evaluate=EvaluateConfig(interval=5, episodes=1), learn=LearnConfig(train_steps=20)
    )
    specs = load_specs(config.environment)
    values = [variable.numpy() for variable in make_agent(config, specs).policy_variables]
    layout = make_layout(config, specs)
    tables = [experience_table(config, layout), *variable_tables(values), identity_table("abc")]
    server = reverb.Server(tables, free_port)
    client = reverb.Client(f"localhost:{free_port}")
    announce(client, "abc", config)
    container = VariableContainer(client, "abc")

    def evaluate(*orders: tuple[int, int], stop: Stop) -> RunDirectory:
        for generation, train_step in orders:
            version = PolicyVariables(train_step, values, generation)
            container.push_evaluation(EvaluationRequest(version, env_steps=train_step))
        directory = RunDirectory(tmp_path)
        directory.prepare(config, joins=True)
        eval_actor.run(config, directory, stop, replay_address=(f"localhost:{free_port}",))
        return directory

    yield evaluate
    server.stop()


def test_train_steps_that_a_restarted_learner_takes_again_are_evaluated_again(evaluate: Evaluate) -> None:
    directory = evaluate((0, 0), (0, 10), (0, 10), (1, 5), (1, 20), stop=Stop())
    recorded = read_records(directory.metrics("eval"))
    assert [record["train_step"] for record in recorded] == [0, 10, 5, 20]


def test_a_policy_whose_evaluation_does_not_fit_on_the_disk_is_not_the_best_one(
    evaluate: Evaluate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop ends the wait for room. The next eval actor repeats the evaluation, on other seeds."""
    stop = Stop()

    def flush(recorder: EvaluationRecorder) -> bool:
        stop.request()
        return False

    monkeypatch.setattr(EvaluationRecorder, "flush", flush)
    assert not evaluate((0, 20), stop=stop).best_policy.exists()


def test_it_waits_for_a_server_that_is_away_before_it_removes_a_request() -> None:
    """A removal would block for half a minute, and leave a thread behind each time."""
    calls: list[str] = []

    def status(timeout_s: int) -> None:
        calls.append("status")
        if len(calls) < 3:
            raise RuntimeError("failed to connect to all addresses")

    container = SimpleNamespace(status=status, remove_evaluation=lambda request: calls.append("removal"))
    request = EvaluationRequest(PolicyVariables(0, []), env_steps=0)
    eval_actor._remove_request(container, request, Stop())
    assert calls == ["status", "status", "status", "removal"]
