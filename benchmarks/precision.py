"""`precision`: train steps a second of the learner with bfloat16 matrix products, beside float32."""

import functools
import itertools
import tempfile
from pathlib import Path
from typing import Any

from actorlearner.agents.configuration import load_config
from actorlearner.config.schema import Config
from benchmarks.learner import Training, fixed_batch
from benchmarks.support import rounds, servers, threads
from benchmarks.support.filling import fill
from benchmarks.support.report import Row

_CONFIGS = ("sac_halfcheetah", "tqc_halfcheetah")
_LAYERS = ("agent.actor_layers", "agent.critic_joint_layers")

_CASES = ((256, 256), (512, 256), (512, 1_024))
"""Units of each of two hidden layers, and transitions in a batch."""


def run(env_steps: int = 20_000, turns: int = 7, round_s: float = 2.0) -> tuple[list[Row], dict[str, Any]]:
    """Measures all in turn, on one fixed batch in memory.

    Args:
      env_steps: in replay, from which the batch comes.
      turns: rounds.
      round_s: seconds of each measurement.
    """
    settings = threads.like_a_learner(load_config("sac_halfcheetah", []))
    rows: list[Row] = []
    details: dict[str, Any] = {}
    with servers.replay_server() as server, tempfile.TemporaryDirectory() as directory:
        specs = fill(server, env_steps)
        for name, (units, batch) in itertools.product(_CONFIGS, _CASES):
            case = f"{name}, {units}x{units}, batches of {batch}"
            measurements = {}
            for precision in ("float32", "bfloat16"):
                config = _config(name, units, batch, precision)
                dataset = functools.partial(fixed_batch, config, specs, server.address)
                learner = Training(config, specs, Path(directory) / case / precision, dataset)
                measurements[precision] = functools.partial(
                    rounds.rate, learner.step, round_s, learner.train_steps
                )
            details[case] = rounds.in_turn(measurements, turns)
            what = f"train steps a second of {case} in bfloat16; ratio to float32"
            figures = rounds.compared(details[case], "bfloat16", "float32")
            rows.append(Row("precision", what, *figures, None, True, settings))
    return rows, details


def _config(name: str, units: int, batch: int, precision: str) -> Config:
    layers = [f"{key}=[{units},{units}]" for key in _LAYERS]
    learn = (f"learn.batch_size={batch}", f"learn.precision={precision}")
    replay = ("replay.min_size=1", "replay.updates_per_env_step=null")  # As `fill` has it.
    return load_config(name, [*layers, *learn, *replay])
