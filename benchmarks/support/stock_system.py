"""TF-Agents' tutorial loop and distributed jobs on HalfCheetah, each a process.

`python -m benchmarks.support.stock_system PORT SETTINGS` serves replay. With `tutorial SETTINGS WARM_UP_S
SECONDS`, `train SETTINGS WARM_UP_S SECONDS ADDRESS` or `collect SETTINGS ADDRESS` as arguments it runs a job.
SETTINGS is a `Settings` as JSON. The first two jobs print their rates; the third runs until it is killed.
"""

import dataclasses
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import reverb
from tf_agents.environments import suite_pybullet
from tf_agents.train import actor, learner

from actorlearner.agents.make import AgentParts, make_agent
from actorlearner.config.schema import Config
from actorlearner.environments.specs import load_specs
from benchmarks.support import rounds, servers, stock, threads
from benchmarks.support.halfcheetah import NAME, configuration

RANDOM_STEPS = 1_000
_CAPACITY = 1_000_000
_TIMEOUT_S = 30


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the stock systems; the defaults are those of TF-Agents' tutorial and examples.

    Attributes:
      our_threads: whether each process has the TensorFlow threads of our role, else TensorFlow's defaults.
      environments: stepped by the one collecting process, with one policy call for all.
      train_steps: in one call of the learner's graph, in the distributed train job.
      push_interval: train steps between two pushes of the variables.
      pull_interval_s: least seconds between two pulls of the variables.
      updates_per_env_step: that the server's rate limiter keeps; None: no ratio is kept.
    """

    our_threads: bool = False
    environments: int = 1
    train_steps: int = 1
    push_interval: int = 1
    pull_interval_s: float = 0.0
    updates_per_env_step: float | None = None


def like_ours(config: Config, environments: int) -> Settings:
    """Returns the settings of a run of ours with so many environments and one update an env step."""
    return Settings(
        our_threads=True,
        environments=environments,
        train_steps=config.learn.train_steps_per_call,
        push_interval=config.learn.publish_interval,
        pull_interval_s=config.collect.variables_interval_s,
        updates_per_env_step=1.0,
    )


def main(job: str, settings_json: str, *arguments: str) -> None:
    """Runs one job; see the module."""
    config = configuration("trajectory")
    settings = Settings(**json.loads(settings_json))
    if settings.our_threads and job in ("tutorial", "train"):
        threads.like_a_learner(config)
    elif settings.our_threads:
        threads.like_an_actor()
    parts = make_agent(config, load_specs(config.environment))
    with tempfile.TemporaryDirectory() as directory:
        if job == "tutorial":
            step = tutorial_loop(parts, Path(directory), config.learn.batch_size, settings)
            rate = _rate(step, settings.environments, *map(float, arguments))
            print(json.dumps({"train_steps_per_s": rate, "env_steps_per_s": rate}))
        elif job == "train":
            *seconds, address = arguments
            train = stock.TrainJob(
                parts.agent,
                parts.train_step,
                address,
                Path(directory),
                config.learn.batch_size,
                settings.train_steps,
                settings.push_interval,
            )
            print(json.dumps(measure(train, address, *map(float, seconds))))
        elif job == "collect":
            step = collect_job(parts, Path(directory), settings, arguments[0])
            while True:
                step()
        else:
            servers.serve(tables(parts, config.learn.batch_size, settings), port=int(job))
    sys.stdout.flush()
    os._exit(0)  # Threads that are blocked inside Reverb would make the interpreter's shutdown hang.


def _rate(step: Callable[[], object], per_step: int, warm_up_s: float, seconds: float) -> float:
    step()  # Traces.
    rounds.rate(step, warm_up_s)
    return rounds.rate(step, seconds, per_step)


def tables(parts: AgentParts, batch_size: int, settings: Settings) -> list[reverb.Table]:
    """Makes the tables of the distributed jobs' replay server."""
    limiter = None
    if settings.updates_per_env_step is not None:  # An item is an env step.
        limiter = stock.ratio_limiter(batch_size * settings.updates_per_env_step, RANDOM_STEPS)
    return stock.tables(parts.agent, parts.train_step, _CAPACITY, limiter)


def tutorial_loop(
    parts: AgentParts, directory: Path, batch_size: int, settings: Settings
) -> Callable[[], None]:
    """Returns a function that takes an env step in each environment and as many train steps."""
    server = reverb.Server(stock.tables(parts.agent, parts.train_step, _CAPACITY)[:1])
    replay = stock.replay_buffer(parts.agent, local_server=server)
    environment = stock.batched(lambda: suite_pybullet.load(NAME), settings.environments)
    observer = stock.make_observer(replay.py_client, environment)
    stock.collect_randomly(environment, parts.train_step, observer, RANDOM_STEPS)
    collect = actor.Actor(
        environment,
        stock.eager(parts.agent.collect_policy, settings.environments),
        parts.train_step,
        steps_per_run=settings.environments,
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
        train.run(iterations=settings.environments)

    return step


def measure(job: stock.TrainJob, address: str, warm_up_s: float, seconds: float) -> dict[str, float]:
    """Trains; returns train steps a second, and env steps a second as they arrive at the server."""
    job.step()  # Traces, and waits until there is enough to sample.
    rounds.rate(job.step, warm_up_s)
    client = reverb.Client(address)
    before, began = _inserts(client), time.perf_counter()
    rate = rounds.rate(job.step, seconds, job.train_steps)
    env_steps = _inserts(client) - before
    return {"train_steps_per_s": rate, "env_steps_per_s": env_steps / (time.perf_counter() - began)}


def _inserts(client: reverb.Client) -> int:
    table = client.server_info(timeout=_TIMEOUT_S)[stock.EXPERIENCE_TABLE]
    return int(table.rate_limiter_info.insert_stats.completed)


def collect_job(parts: AgentParts, directory: Path, settings: Settings, address: str) -> Callable[[], None]:
    """Returns a function that takes an env step in each environment, after the random ones at the start.

    Blocks until the train job has pushed the first variables.
    """
    server = reverb.Client(address)
    while not server.server_info(timeout=_TIMEOUT_S)[stock.VARIABLES_TABLE].current_size:
        time.sleep(0.1)
    policy = parts.agent.collect_policy
    environment = stock.batched(lambda: suite_pybullet.load(NAME), settings.environments)
    job = stock.CollectJob(
        environment,
        stock.eager(policy, settings.environments),
        address,
        directory,
        policy,
        pull_interval_s=settings.pull_interval_s,
    )
    stock.collect_randomly(environment, job.train_step, job.observer, RANDOM_STEPS)

    def step() -> None:
        job.step()
        if settings.updates_per_env_step is not None:
            job.observer.flush()  # Else the limiter blocks only the writer's thread, and its queue grows.

    return step


if __name__ == "__main__":
    main(*sys.argv[1:])
