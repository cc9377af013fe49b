"""TF-Agents' tutorial loop and distributed jobs on HalfCheetah: each a process that prints its rates.

`python -m benchmarks.stock_system tutorial WARM_UP_S SECONDS`, `... train ADDRESS WARM_UP_S SECONDS`, and
`... collect ADDRESS`, which goes on until its standard input is closed.
"""

import json
import os
import select
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import reverb
from tf_agents.environments import suite_pybullet
from tf_agents.policies import py_tf_eager_policy
from tf_agents.replay_buffers import reverb_replay_buffer, reverb_utils
from tf_agents.train import actor, learner

from actorlearner.agents.make import AgentParts, make_agent
from actorlearner.environments.specs import load_specs
from benchmarks import rounds, stock
from benchmarks.halfcheetah import NAME, configuration

_RANDOM_STEPS = 1_000


def main(job: str, *arguments: str) -> None:
    """Runs one job; prints its rates as JSON on its last line."""
    config = configuration("trajectory")
    parts = make_agent(config, load_specs(config.environment))
    with tempfile.TemporaryDirectory() as directory:
        if job == "tutorial":
            step = _tutorial_loop(parts, Path(directory), config.learn.batch_size)
            rate = _rate(step, *map(float, arguments))
            print(json.dumps({"train_steps_per_s": rate, "env_steps_per_s": rate}))
        elif job == "train":
            train = stock.TrainJob(
                parts.agent, parts.train_step, arguments[0], Path(directory), config.learn.batch_size
            )
            print(json.dumps({"train_steps_per_s": _rate(train.step, *map(float, arguments[1:]))}))
        else:
            print(json.dumps({"env_steps_per_s": _collect(parts, Path(directory), arguments[0])}))
    sys.stdout.flush()
    os._exit(0)  # Threads that are blocked inside Reverb would make the interpreter's shutdown hang.


def _rate(step: Callable[[], object], warm_up_s: float, seconds: float) -> float:
    step()  # Traces.
    rounds.rate(step, warm_up_s)
    return rounds.rate(step, seconds)


def _eager(parts: AgentParts) -> py_tf_eager_policy.PyTFEagerPolicy:
    return py_tf_eager_policy.PyTFEagerPolicy(parts.agent.collect_policy, use_tf_function=True)


def _tutorial_loop(parts: AgentParts, directory: Path, batch_size: int) -> Callable[[], None]:
    """One env step and one train step in turn, with replay in the same process."""
    experience = stock.tables(parts.agent, parts.train_step, capacity=100_000)[0]
    server = reverb.Server([experience])
    replay = reverb_replay_buffer.ReverbReplayBuffer(
        parts.agent.collect_data_spec,
        sequence_length=2,
        table_name=stock.EXPERIENCE_TABLE,
        local_server=server,
    )
    observer = reverb_utils.ReverbAddTrajectoryObserver(
        replay.py_client, stock.EXPERIENCE_TABLE, sequence_length=2, stride_length=1
    )
    environment = suite_pybullet.load(NAME)
    stock.collect_randomly(environment, parts.train_step, observer, _RANDOM_STEPS)
    collect = actor.Actor(
        environment,
        _eager(parts),
        parts.train_step,
        steps_per_run=1,
        metrics=actor.collect_metrics(10),
        summary_dir=str(directory / "collect"),
        observers=[observer],
    )
    train = learner.Learner(
        str(directory),
        parts.train_step,
        parts.agent,
        lambda: replay.as_dataset(sample_batch_size=batch_size, num_steps=2).prefetch(50),
    )

    def step() -> None:
        collect.run()
        train.run(iterations=1)

    return step


def _collect(parts: AgentParts, directory: Path, address: str) -> float:
    """Collects until standard input is closed; returns env steps a second with the policy."""
    server = reverb.Client(address)
    while not server.server_info(timeout=30)[stock.VARIABLES_TABLE].current_size:
        time.sleep(0.1)  # Until the train job has pushed the first variables.
    job = stock.CollectJob(
        suite_pybullet.load(NAME), _eager(parts), address, directory, parts.agent.collect_policy
    )
    stock.collect_randomly(job.environment, job.train_step, job.observer, _RANDOM_STEPS)
    began, env_steps = time.perf_counter(), 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        job.step()
        env_steps += 1
    return env_steps / (time.perf_counter() - began)


if __name__ == "__main__":
    main(*sys.argv[1:])
