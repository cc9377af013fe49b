"""`system`: env steps and train steps a second of whole systems on this machine, after warm-up."""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.report import Row
from benchmarks.servers import replay_server

_ROUNDS = 3
_TRAIN_STEPS = 6_000
_WARM_UP = 1_500
_RANDOM_STEPS = 1_000
_STOCK_WARM_UP_S = 5.0
_STOCK_S = 20.0
_DEADLINE_S = 300.0


def run() -> tuple[list[Row], dict[str, Any]]:
    """Measures local mode, TF-Agents' tutorial loop and its distributed roles in turn."""
    measurements = {"ours": _local_mode, "tutorial loop": _tutorial, "distributed roles": _distributed}
    details: dict[str, Any] = {name: [] for name in measurements}
    for _ in range(_ROUNDS):
        for name, measure in measurements.items():
            details[name].append(measure())
    train = {
        name: statistics.median(rates["train_steps_per_s"] for rates in details[name]) for name in details
    }
    ours = train["ours"]
    rows = []
    for name, goal in (("tutorial loop", 3), ("distributed roles", 5)):
        what = f"train steps a second, HalfCheetah, one update an env step; ratio to TF-Agents' {name}"
        rows.append(Row("system", what, train[name], ours, ours / train[name], goal, True))
    return rows, details


def _local_mode() -> dict[str, float]:
    settings = [
        f"collect.initial_random_steps={_RANDOM_STEPS}",
        f"replay.min_size={_RANDOM_STEPS}",
        f"learn.train_steps={_TRAIN_STEPS}",
        f"evaluate.interval={_TRAIN_STEPS}",
        "evaluate.episodes=1",
    ]
    with tempfile.TemporaryDirectory() as directory:
        run_directory = Path(directory) / "run"
        command = [sys.executable, "-m", "actorlearner", "local", "--config", "sac_halfcheetah"]
        subprocess.run(
            [*command, "--run_dir", str(run_directory), "--set", *settings],
            stdout=subprocess.DEVNULL,
            timeout=_DEADLINE_S,
            check=True,
        )
        lines = (run_directory / "metrics" / "learner.jsonl").read_text().splitlines()
    records = [record for record in map(json.loads, lines) if record["train_step"] >= _WARM_UP]
    first, last = records[0], records[-1]
    seconds = last["time"] - first["time"]
    return {
        "train_steps_per_s": (last["train_step"] - first["train_step"]) / seconds,
        "env_steps_per_s": (last["env_steps"] - first["env_steps"]) / seconds,
        "data_wait_fraction": statistics.median(record["data_wait_fraction"] for record in records[1:]),
    }


def _tutorial() -> dict[str, float]:
    return _stock_process("tutorial")


def _distributed() -> dict[str, float]:
    with replay_server() as server:
        collect = _start("collect", server.address)
        try:
            train = _stock_process("train", server.address)
            collect_rates, _ = collect.communicate(input="", timeout=60)  # At which it ends.
        finally:
            collect.kill()
    return train | json.loads(collect_rates.splitlines()[-1])


def _start(job: str, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.stock_system", job, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _stock_process(job: str, *arguments: str) -> dict[str, float]:
    process = _start(job, *arguments, str(_STOCK_WARM_UP_S), str(_STOCK_S))
    try:
        printed, _ = process.communicate(timeout=_DEADLINE_S)
    finally:
        process.kill()
    if process.returncode:
        raise RuntimeError(f"the stock {job} job ended with exit code {process.returncode}")
    rates: dict[str, float] = json.loads(printed.splitlines()[-1])
    return rates
