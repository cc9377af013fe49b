"""`actor`: env steps a second of a complete collect actor, beside bare stepping and the stock Actor."""

import functools
import itertools
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import reverb
from tf_agents.environments import py_environment, suite_pybullet

from actorlearner.acting.collect_metrics import CollectMetrics
from actorlearner.acting.collector import Collector
from actorlearner.acting.policy_function import PolicyFunction, RandomPolicy
from actorlearner.agents.make import make_agent
from actorlearner.config.schema import Config
from actorlearner.environments.batch import EnvironmentBatch
from actorlearner.environments.environment import Nest
from actorlearner.environments.guarded import load_guarded
from actorlearner.environments.load import load_environment
from actorlearner.environments.specs import EnvironmentSpecs, environment_specs
from actorlearner.process.stop import Stop
from actorlearner.process.waiting import wait_until
from actorlearner.records.formatting import plural
from actorlearner.records.run_directory import RunDirectory
from actorlearner.replay.connection import ReplayServer
from actorlearner.replay.layout import make_layout
from actorlearner.variables.container import PolicyOrder
from actorlearner.variables.publisher import Publisher
from actorlearner.variables.puller import VariablePuller
from benchmarks.support import rounds, servers, stock, threads
from benchmarks.support.halfcheetah import NAME, configuration
from benchmarks.support.report import Row

_GOALS = {NAME: 0.85, "AntBulletEnv-v0": 0.85, "MinitaurBulletEnv-v0": 0.95}
_DEFAULT, _MANY = 8, 16
"""Environments of the actor: as local mode has on two cores, and for simulators as fast as these."""

_LIKE_STOCK_GOAL = 1
"""At equal settings our actor must not be slower, although it also checks the environments' answers."""

_SHIPPED_GOAL = 4
_SHIPPED = "stock as it ships"


def run(
    names: Sequence[str] = tuple(_GOALS), turns: int = 25, round_s: float = 0.5
) -> tuple[list[Row], dict[str, Any]]:
    """Measures in one process with one thread, as a collect actor has; the server is another process.

    Args:
      names: the environments of pybullet to measure in, of those with a goal.
      turns: rounds. Many short ones: the machine's speed changes from one second to the next.
      round_s: seconds of each measurement.
    """
    set_threads = threads.like_an_actor()
    details = {name: _measure(name, turns, round_s) for name in names}
    rows = [row for name in names for row in _rows(name, details[name], set_threads)]
    return rows, details


def _rows(name: str, values: dict[str, list[float]], set_threads: str) -> list[Row]:
    def row(count: int, beside: str, to: str, goal: float | None, settings: str) -> Row:
        what = f"env steps a second in {name}; ratio to {to}"
        figures = rounds.compared(values, f"ours, {count}", beside)
        return Row("actor", what, *figures, goal, True, settings)

    def both(count: int) -> str:
        return f"both: {plural(count, 'environment')}, {set_threads}"

    rows = [
        row(_MANY, f"bare, {_MANY}", "bare stepping", _GOALS[name], both(_MANY)),
        row(_DEFAULT, f"bare, {_DEFAULT}", "bare stepping", None, both(_DEFAULT)),
    ]
    if _SHIPPED in values:
        interval = configuration().collect.variables_interval_s
        pulls = f"at most a pull every {interval:g} s"
        rows += [
            row(count, f"stock, {count}", "the stock Actor", _LIKE_STOCK_GOAL, f"{both(count)}, {pulls}")
            for count in (1, _DEFAULT)
        ]
        settings = (
            f"ours: {_DEFAULT} environments, {pulls}; "
            f"stock: 1 environment, a pull after each env step; both: {set_threads}"
        )
        example = "the stock Actor as its example runs it"
        rows.append(row(_DEFAULT, _SHIPPED, example, _SHIPPED_GOAL, settings))
    return rows


def _measure(name: str, turns: int, round_s: float) -> dict[str, list[float]]:
    config = configuration(name=name)
    steps: dict[str, tuple[Callable[[], object], int]] = {}
    with servers.replay_server(name) as server, tempfile.TemporaryDirectory() as directory:
        for count in (_DEFAULT, _MANY):
            steps[f"bare, {count}"] = Bare([suite_pybullet.load(name) for _ in range(count)]).step, count
        for count in (1, _DEFAULT, _MANY) if name == NAME else (_DEFAULT, _MANY):
            steps[f"ours, {count}"] = (
                collector(config, count, server.address, Path(directory) / f"ours-{count}"),
                count,
            )
        if name == NAME:
            interval = config.collect.variables_interval_s
            for label, count, pull_interval_s in (
                ("stock, 1", 1, interval),
                (f"stock, {_DEFAULT}", _DEFAULT, interval),
                (_SHIPPED, 1, 0.0),
            ):
                job = _stock_job(config, server.address, Path(directory) / label, count, pull_interval_s)
                steps[label] = job.step, count
        measurements = {
            label: functools.partial(rounds.rate, step, round_s, count)
            for label, (step, count) in steps.items()
        }
        return rounds.in_turn(measurements, turns)


class Bare:
    """Steps environments of TF-Agents' suite in turn with random actions, and does nothing else."""

    def __init__(self, environments: Sequence[py_environment.PyEnvironment]) -> None:
        """Draws the actions beforehand."""
        self._environments = environments
        spec = environments[0].action_spec()
        size = (1_000, *spec.shape)
        self._actions = np.random.default_rng(0).uniform(-1, 1, size).astype(spec.dtype)
        self._actions_taken = 0
        for environment in environments:
            environment.reset()

    def step(self) -> None:
        """Takes an env step in each environment; a new episode begins by itself."""
        for environment in self._environments:
            environment.step(self._actions[self._actions_taken % len(self._actions)])
            self._actions_taken += 1


def collector(config: Config, count: int, address: str, directory: Path) -> Callable[[], None]:
    """Returns the function that a collect actor with `count` environments calls in a loop."""
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
    replay, batch = ReplayServer(client, make_layout(config, specs)), EnvironmentBatch(environments)
    metrics = CollectMetrics(RunDirectory(directory), 0, batch, replay, puller)
    collector = Collector(config, batch, replay, puller, metrics, stop)
    return lambda: collector.step(cast(PolicyFunction, policy), PolicyOrder(generation=0, train_step=0))


def _then_randomly(policy: PolicyFunction, specs: EnvironmentSpecs, count: int) -> Callable[..., Nest]:
    """Asks the policy, but acts as bare stepping does: resets cost time, and episodes must be as long."""
    random = RandomPolicy(specs, 1_000 * count, seed=0)(None, np.array([]))
    calls = itertools.count()

    def act(observations: Nest, first: Nest) -> Nest:
        policy(observations, first)
        start = next(calls) % 1_000 * count
        return random[start : start + count]

    return act


def _stock_job(
    config: Config, address: str, directory: Path, count: int, pull_interval_s: float
) -> stock.CollectJob:
    """Makes a stock collect job; `collector` has published the variables that it pulls first."""
    environment = load_environment(config.environment, 0)
    policy = make_agent(config, environment_specs(environment)).agent.collect_policy
    environment.close()
    suite = stock.batched(lambda: suite_pybullet.load(config.environment.name), count)
    return stock.CollectJob(
        suite, stock.eager(policy, count), address, directory, policy, pull_interval_s=pull_interval_s
    )
