"""`ppo`: env steps a second of whole PPO trainings on HalfCheetah, ours and TF-Agents' own loop in turn.

With `stock` and a number of iterations as arguments it runs TF-Agents' loop
(tf_agents/examples/ppo/schulman17) and prints its rate.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any
from unittest import mock

from tf_agents.environments import suite_pybullet

from benchmarks import system
from benchmarks.support import rounds
from benchmarks.support.halfcheetah import NAME
from benchmarks.support.report import Row

_ENV_STEPS = 2_048
_EPOCHS = 10
_BATCH = 64
_ITERATIONS = 12
_DEADLINE_S = 420.0  # Without a hang it takes 50 to 200 s.
_ATTEMPTS = 3
_GOAL = 1.0


def run(turns: int = 3, iterations: int = _ITERATIONS) -> tuple[list[Row], dict[str, Any]]:
    """Measures rounds of both in turn, each with so many iterations of training; the first do not count."""
    measurements = {
        "stock": lambda: _stock(iterations),
        "1 environment": lambda: _ours(1, 1, iterations),
        "16 environments": lambda: _ours(2, 8, iterations),
    }
    details = rounds.in_turn(measurements, turns)
    settings = (
        f"both: iterations of {_ENV_STEPS} env steps, {_EPOCHS} epochs of minibatches of {_BATCH}; stock"
    )
    return [
        Row(
            "ppo",
            f"env steps a second of PPO on HalfCheetah, {name}; ratio to TF-Agents' loop",
            *rounds.compared(details, name, "stock"),
            _GOAL,
            True,
            f"{settings}: 1 environment, in one process; ours: {actors}",
        )
        for name, actors in (("1 environment", "1 actor"), ("16 environments", "2 actors"))
    ], details


def _ours(actors: int, environments: int, iterations: int) -> float:
    settings = [
        f"agent.env_steps_per_iteration={_ENV_STEPS}",
        "agent.fragment_length=128",
        f"agent.epochs={_EPOCHS}",
        "agent.actor_layers=[64,64]",  # TF-Agents' loop has these layers.
        "agent.value_layers=[64,64]",
        f"learn.batch_size={_BATCH}",
        f"collect.actors={actors}",
        f"collect.envs_per_actor={environments}",
    ]
    train_steps = iterations * _EPOCHS * _ENV_STEPS // _BATCH
    return system.rates_of_local_mode("ppo_halfcheetah", settings, train_steps)["env_steps_per_s"]


def _stock(iterations: int) -> float:
    """Returns the rate of TF-Agents' loop, which hangs now and then; it is then started again.

    Raises:
      RuntimeError: it hung each time.
    """
    command = [sys.executable, "-m", "benchmarks.ppo", "stock", str(iterations)]
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=_DEADLINE_S, check=True)
        except subprocess.TimeoutExpired:
            print(f"TF-Agents' loop hung for {_DEADLINE_S:.0f} s (attempt {attempt})", file=sys.stderr)
        else:
            return float(json.loads(done.stdout.splitlines()[-1]))
    raise RuntimeError(f"TF-Agents' loop hung {_ATTEMPTS} times in a row")


def stock_loop(iterations: int) -> float:
    """Runs TF-Agents' loop on pybullet's HalfCheetah; returns its env steps a second after a quarter."""
    from tf_agents.examples.ppo.schulman17 import train_eval_lib

    ends: list[float] = []

    class Learner(train_eval_lib.ppo_learner.PPOLearner):
        def run(self, *arguments: Any, **keywords: Any) -> Any:
            loss = super().run(*arguments, **keywords)
            ends.append(time.perf_counter())
            return loss

    with (
        tempfile.TemporaryDirectory() as directory,
        mock.patch.object(train_eval_lib.suite_mujoco, "load", suite_pybullet.load),
        mock.patch.object(train_eval_lib.ppo_learner, "PPOLearner", Learner),
    ):
        train_eval_lib.train_eval(
            directory,
            NAME,
            num_iterations=iterations,
            collect_sequence_length=_ENV_STEPS,
            minibatch_size=_BATCH,
            num_epochs=_EPOCHS,
            eval_interval=0,
        )
    counted = ends[iterations // 4 :]
    return (len(counted) - 1) * _ENV_STEPS / (counted[-1] - counted[0])


if __name__ == "__main__":
    print(json.dumps(stock_loop(int(sys.argv[2]))))
    sys.stdout.flush()
    os._exit(0)  # Threads that are blocked inside Reverb would make the interpreter's shutdown hang.
