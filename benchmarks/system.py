"""`system`: env steps and train steps a second of complete systems on this machine, after warm-up."""

import dataclasses
import functools
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.support import rounds, servers, threads
from benchmarks.support.halfcheetah import configuration
from benchmarks.support.report import Row
from benchmarks.support.stock_system import RANDOM_STEPS, Settings, like_ours

_ENVIRONMENTS = 8
_OURS = "ours"
_DEADLINE_S = 300.0

_LIKE_OURS_GOAL = 1
"""At equal settings a user who changes from stock to ours must not lose speed."""

_SHIPPED_GOALS = {"tutorial loop": 3, "distributed roles": 5}

Rates = dict[str, float]


def run(
    turns: int = 3, train_steps: int = 5_000, warm_up_s: float = 5.0, seconds: float = 15.0
) -> tuple[list[Row], dict[str, Any]]:
    """Measures local mode, TF-Agents' tutorial loop and its distributed roles in turn.

    Args:
      turns: rounds.
      train_steps: that ours takes; the first quarter is its warm-up.
      warm_up_s: of stock's systems, after their first train step.
      seconds: in which stock's systems are measured after that.
    """
    stock_s = (warm_up_s, seconds)
    alike, shipped = like_ours(configuration(), _ENVIRONMENTS), Settings()
    measurements = {
        _OURS: functools.partial(local_mode, train_steps),
        "tutorial loop": functools.partial(_tutorial, alike, *stock_s),
        "distributed roles": functools.partial(_distributed, alike, *stock_s),
        _shipped("tutorial loop"): functools.partial(_tutorial, shipped, *stock_s),
        _shipped("distributed roles"): functools.partial(_distributed, shipped, *stock_s),
    }
    details = rounds.in_turn(measurements, turns)
    train = {name: [rates["train_steps_per_s"] for rates in values] for name, values in details.items()}
    goals = dict.fromkeys(_SHIPPED_GOALS, _LIKE_OURS_GOAL) | {
        _shipped(name): goal for name, goal in _SHIPPED_GOALS.items()
    }
    settings = _settings()
    rows = []
    for name, goal in goals.items():
        what = f"train steps a second, HalfCheetah; ratio to TF-Agents' {name}"
        rows.append(Row("system", what, *rounds.compared(train, _OURS, name), goal, True, settings[name]))
    return rows, details


def _shipped(name: str) -> str:
    return f"{name} as shipped"


def _settings() -> dict[str, str]:
    config = configuration()
    ratio = "one update an env step"
    ours = f"{_ENVIRONMENTS} environments, {ratio}, {threads.of_a_learner(config)}"
    roles = (
        f"a push every {config.learn.publish_interval} train steps, a pull every "
        f"{config.collect.variables_interval_s:g} s, {config.learn.train_steps_per_call} train steps a call"
    )
    return {
        "tutorial loop": f"both: {ours}; stock: {_ENVIRONMENTS} train steps a call",
        "distributed roles": f"both: {ours} for training, {threads.OF_AN_ACTOR} for acting, {roles}",
        _shipped("tutorial loop"): f"ours: {ours}; stock: 1 environment, {ratio}, {threads.DEFAULTS}",
        _shipped("distributed roles"): (
            f"ours: {ours}, {roles}; stock: 1 environment, no ratio kept, a push after each train step, "
            f"a pull after each env step, {threads.DEFAULTS}"
        ),
    }


def local_mode(train_steps: int) -> Rates:
    """Runs SAC in local mode; returns its rates without its start and the first quarter."""
    settings = [
        "collect.actors=1",
        f"collect.envs_per_actor={_ENVIRONMENTS}",
        f"collect.initial_random_steps={RANDOM_STEPS}",
        f"replay.min_size={RANDOM_STEPS}",
        "agent.observation_normalizer=false",
    ]
    return rates_of_local_mode("sac_halfcheetah", settings, train_steps)


def rates_of_local_mode(config: str, settings: Sequence[str], train_steps: int) -> Rates:
    """Runs local mode with one evaluation at its end; returns its rates without the first quarter."""
    lengths = [f"learn.train_steps={train_steps}", f"evaluate.interval={train_steps}", "evaluate.episodes=1"]
    with tempfile.TemporaryDirectory() as directory:
        run_directory = Path(directory) / "run"
        command = [sys.executable, "-m", "actorlearner", "local", "--config", config]
        subprocess.run(
            [*command, "--run_dir", str(run_directory), "--set", *settings, *lengths],
            stdout=subprocess.DEVNULL,
            timeout=_DEADLINE_S,
            check=True,
        )
        lines = (run_directory / "metrics" / "learner.jsonl").read_text().splitlines()
    return mean_rates([json.loads(line) for line in lines], train_steps // 4)


def mean_rates(records: Sequence[dict[str, float]], warm_up: int) -> Rates:
    """Returns the mean rates of a learner's records from train step `warm_up` on."""
    first, *later = [record for record in records if record["train_step"] >= warm_up]
    seconds = later[-1]["time"] - first["time"]
    return {
        "train_steps_per_s": (later[-1]["train_step"] - first["train_step"]) / seconds,
        "env_steps_per_s": (later[-1]["env_steps"] - first["env_steps"]) / seconds,
        "data_wait_fraction": statistics.median(record["data_wait_fraction"] for record in later),
    }


def _tutorial(settings: Settings, warm_up_s: float, seconds: float) -> Rates:
    return _finish(_start("tutorial", settings, str(warm_up_s), str(seconds)))


def _distributed(settings: Settings, warm_up_s: float, seconds: float) -> Rates:
    with servers.serving("benchmarks.support.stock_system", _as_json(settings)) as server:
        collect = _start("collect", settings, server.address)
        try:
            return _finish(_start("train", settings, str(warm_up_s), str(seconds), server.address))
        finally:
            collect.kill()
            collect.communicate()


def _as_json(settings: Settings) -> str:
    return json.dumps(dataclasses.asdict(settings))


def _start(job: str, settings: Settings, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "benchmarks.support.stock_system", job, _as_json(settings), *arguments]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)


def _finish(process: "subprocess.Popen[str]") -> Rates:
    """Waits for a job to print its rates, for up to _DEADLINE_S."""
    try:
        printed, _ = process.communicate(timeout=_DEADLINE_S)
    finally:
        process.kill()
    if process.returncode:
        raise RuntimeError(f"a stock job ended with exit code {process.returncode}: {process.args!r}")
    rates: Rates = json.loads(printed.splitlines()[-1])
    return rates
