"""`actor`: env steps a second of a whole collect actor, beside bare stepping and the stock Actor."""

import functools
import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import reverb
from tf_agents.environments import py_environment, suite_pybullet
from tf_agents.policies import py_tf_eager_policy

from actorlearner.agents.make import make_agent
from actorlearner.collecting.collect_metrics import CollectMetrics
from actorlearner.collecting.collector import Collector
from actorlearner.config.schema import Config
from actorlearner.environments.batch import EnvironmentBatch
from actorlearner.environments.environment import Nest
from actorlearner.environments.guarded import load_guarded
from actorlearner.environments.load import load_environment
from actorlearner.environments.specs import EnvironmentSpecs, environment_specs
from actorlearner.files.run_directory import RunDirectory
from actorlearner.learning.publisher import Publisher
from actorlearner.lifecycle.stop import Stop
from actorlearner.machine.devices import use_cpu
from actorlearner.policy_function import PolicyFunction, RandomFunction
from actorlearner.replay.layout import make_layout
from actorlearner.replay.status import ServerMonitor
from actorlearner.variables.container import PolicyOrder
from actorlearner.variables.puller import VariablePuller
from actorlearner.waiting import wait_until
from benchmarks import rounds, stock
from benchmarks.halfcheetah import NAME, configuration
from benchmarks.report import Row
from benchmarks.servers import replay_server

_GOALS = {NAME: 0.85, "AntBulletEnv-v0": 0.85, "MinitaurBulletEnv-v0": 0.95}
_DEFAULT, _MANY = 8, 16
"""Environments of the actor: as local mode has on two cores, and for simulators as fast as these."""

# Short rounds in turn: the machine's speed changes from one second to the next.
_ROUNDS = 41
_ROUND_S = 0.5
_STOCK_GOAL = 4


def run() -> tuple[list[Row], dict[str, Any]]:
    """Measures in one process with one thread, as a collect actor has; the server is another process."""
    use_cpu(threads=1)
    rows: list[Row] = []
    details: dict[str, Any] = {}
    for name, goal in _GOALS.items():
        details[name] = {}
        values = _measure(name, details[name])
        for environments, wanted in ((_MANY, goal), (_DEFAULT, None)):
            rate, bare = values[f"ours, {environments}"], values["bare"]
            ratio = rounds.ratio(details[name], f"ours, {environments}", "bare")
            what = f"env steps a second in {name}, {environments} environments"
            rows.append(Row("actor", f"{what}; ratio to bare stepping", bare, rate, ratio, wanted, True))
        if "stock" in values:
            ratio = rounds.ratio(details[name], f"ours, {_DEFAULT}", "stock")
            what += "; ratio to the stock Actor with a pull a step"
            rows.append(Row("actor", what, values["stock"], rate, ratio, _STOCK_GOAL, True))
    return rows, details


def _measure(name: str, details: dict[str, list[float]]) -> dict[str, float]:
    config = configuration(name=name)
    with replay_server(name) as server, tempfile.TemporaryDirectory() as directory:
        bare = Bare(suite_pybullet.load(name))
        measurements: dict[str, rounds.Measurement] = {"bare": lambda: rounds.rate(bare.step, _ROUND_S)}
        for environments in (_DEFAULT, _MANY):
            step = _collector(config, environments, server.address, Path(directory) / str(environments))
            measure = functools.partial(rounds.rate, step, _ROUND_S, environments)
            measurements[f"ours, {environments}"] = measure
        if name == NAME:
            job = _stock_job(config, server.address, Path(directory))
            measurements["stock"] = lambda: rounds.rate(job.step, _ROUND_S)
        return rounds.medians(measurements, _ROUNDS, details)


class Bare:
    """Steps the environment of TF-Agents' suite with random actions, and does nothing else."""

    def __init__(self, environment: py_environment.PyEnvironment) -> None:
        """Draws the actions beforehand."""
        self._environment = environment
        spec = environment.action_spec()
        size = (1_000, *spec.shape)
        self._actions = np.random.default_rng(0).uniform(-1, 1, size).astype(spec.dtype)
        self._steps = 0
        environment.reset()

    def step(self) -> None:
        """Takes an env step; a new episode begins by itself."""
        self._environment.step(self._actions[self._steps % len(self._actions)])
        self._steps += 1


def _collector(config: Config, count: int, address: str, directory: Path) -> Callable[[], None]:
    """What the collect actor with so many environments calls again and again once it acts with a policy."""
    environments = [load_guarded(config.environment, 0, "benchmark", 0, i) for i in range(count)]
    specs = environment_specs(environments[0])
    parts = make_agent(config, specs)
    client = reverb.Client(address)
    publisher = Publisher(client, parts)
    publisher.publish()
    publisher.flush(timeout_s=60)
    stop = Stop()
    puller = VariablePuller(address, config.collect.variables_interval_s, stop)
    wait_until("the first variables", lambda: puller.train_step >= 0, stop, deadline_s=60)
    policy = _then_randomly(PolicyFunction(parts.agent.collect_policy, specs, count), specs, count)
    layout = make_layout(config, specs)
    collector = Collector(
        EnvironmentBatch(environments),
        layout.writer(client, count),
        ServerMonitor(client, layout),
        puller,
        CollectMetrics(RunDirectory(directory), 0),
        config.learn.train_steps,
        stop,
    )
    return lambda: collector.step(policy, PolicyOrder(generation=0, train_step=0))


def _then_randomly(policy: PolicyFunction, specs: EnvironmentSpecs, count: int) -> Callable[..., Nest]:
    """Asks the policy, but acts as bare stepping does: resets cost time, and episodes must be as long."""
    random = RandomFunction(specs, 1_000 * count, seed=0)(None, np.array([]))
    calls = itertools.count()

    def act(observations: Nest, first: Nest) -> Nest:
        policy(observations, first)
        start = next(calls) % 1_000 * count
        return random[start : start + count]

    return act


def _stock_job(config: Config, address: str, directory: Path) -> stock.CollectJob:
    environment = load_environment(config.environment, 0)
    agent = make_agent(config, environment_specs(environment)).agent
    environment.close()
    suite = suite_pybullet.load(config.environment.name)
    policy = py_tf_eager_policy.PyTFEagerPolicy(agent.collect_policy, use_tf_function=True)
    return stock.CollectJob(suite, policy, address, directory / "stock", agent.collect_policy)
