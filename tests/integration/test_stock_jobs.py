"""TF-Agents' own collect, train and eval jobs join a run of replay.layout trajectory."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tensorflow as tf
from tf_agents.environments import suite_gym

from actorlearner.agents.configuration import load_config
from actorlearner.agents.make import make_agent
from actorlearner.environments.specs import load_specs
from benchmarks.support.stock import CollectJob, EvalJob, TrainJob, collect_randomly, saved_policy
from tests.support.processes import REPOSITORY, TINY_RUN, Command, records, wait_for

pytestmark = [pytest.mark.integration, pytest.mark.long]

_PENDULUM = str(REPOSITORY / "configs" / "sac_pendulum.yaml")
_TRAIN_STEPS = 100
_SETTINGS = [
    *(*TINY_RUN, "replay.layout=trajectory", "replay.updates_per_env_step=null"),
    *(f"learn.train_steps={_TRAIN_STEPS}", f"evaluate.interval={_TRAIN_STEPS}"),
]

Role = Callable[..., Command]


@pytest.fixture(name="address")
def _address(free_port: int) -> str:
    return f"localhost:{free_port}"


@pytest.fixture(name="role")
def _role(start: Callable[..., Command], address: str) -> Iterator[Role]:
    """Starts our roles; the replay server runs from the start and is ended after the test."""

    def role(name: str, *options: str) -> Command:
        arguments = ("-m", "actorlearner", name, "--config", _PENDULUM, "--run_dir", name, *options)
        return start(*arguments, "--set", *_SETTINGS)

    server = role("replay-server", "--port", address.rpartition(":")[2])
    yield role
    server.interrupt(signal.SIGTERM)
    assert server.finish() == 143, server.err


def test_stock_collect_and_eval_jobs_work_with_our_learner(role: Role, address: str, tmp_path: Path) -> None:
    learner = role("learner", "--replay_address", address)
    collect_policy = saved_policy(tmp_path / "learner", "collect_policy")
    collect = CollectJob(suite_gym.load("Pendulum-v1"), collect_policy, address, tmp_path / "collect")
    collect_randomly(collect.environment, collect.train_step, collect.observer, 200)
    while learner.process.poll() is None:
        collect.step()
    assert learner.finish() == 0, learner.err
    collect.step()
    assert collect.train_step.numpy() == _TRAIN_STEPS
    collect.observer.close()

    newest = records(tmp_path / "learner" / "metrics" / "learner.jsonl")[-1]
    assert newest["train_step"] == _TRAIN_STEPS
    assert newest["env_steps"] >= 200
    assert newest["staleness_mean"] is None  # Stock jobs do not record which policy acted.
    greedy_policy = saved_policy(tmp_path / "learner", "greedy_policy")
    evaluation = EvalJob(suite_gym.load("Pendulum-v1"), greedy_policy, address, episodes=2)
    assert -2000 < evaluation.evaluate() < 0
    assert evaluation.train_step.numpy() == _TRAIN_STEPS


def test_a_stock_train_job_works_with_our_collect_actor(role: Role, address: str, tmp_path: Path) -> None:
    actor = role("collect-actor", "--replay_address", address, "--actor_index", "0")
    config = load_config(_PENDULUM, _SETTINGS)
    parts = make_agent(config, load_specs(config.environment))
    job = TrainJob(parts.agent, parts.train_step, address, tmp_path / "stock", config.learn.batch_size)
    before = [variable.numpy() for variable in parts.policy_variables]
    stored = tmp_path / "replay-server" / "metrics" / "replay.jsonl"
    collected = tmp_path / "collect-actor" / "metrics" / "collect-0.jsonl"
    enough = config.replay.min_size
    wait_for(lambda: any(record["inserts"] >= enough for record in records(stored)), "enough to train on")
    actor.freeze()  # Without a rate limiter, it would take a core while the job traces its graph.
    for _ in range(_TRAIN_STEPS // 2):
        job.step()
    actor.thaw()
    wait_for(
        lambda: records(collected)[-1]["policy_train_step"] >= 0, "the actor to act with the job's policy"
    )
    for _ in range(_TRAIN_STEPS // 2):
        job.step()
    # Our actor acts with what the job pushed, and ends at the last train step.
    assert actor.finish() == 0, actor.err
    after = [variable.numpy() for variable in parts.policy_variables]
    assert any(tf.reduce_any(tf.not_equal(x, y)) for x, y in zip(before, after, strict=True))
