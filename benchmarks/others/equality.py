"""Checks that a library's environment behaves like ours: equal limits, observations, rewards and ends."""

import json
import subprocess
from collections.abc import Mapping
from typing import Any

import numpy as np

from actorlearner.config.schema import EnvironmentConfig
from actorlearner.environments.load import load_environment
from benchmarks.others import ours
from benchmarks.others.libraries import REPOSITORY, python
from benchmarks.others.measure import parse
from benchmarks.others.runners.world import random_actions

_SEED = 7
_ENV_STEPS = 1_100
"""More than an episode of each environment."""

Trace = Mapping[str, Any]


def check(library: str, environment: str) -> list[str]:
    """Returns a line for each difference between a library's environment and ours; none if they are equal."""
    resets = 2 if ours.suite(environment) == "pybullet" else 3  # As ours, see `our_trace`.
    world = [str(python(library)), "-m", "benchmarks.others.runners.world", environment]
    command = [*world, *map(str, (_SEED, _ENV_STEPS, resets))]
    done = subprocess.run(
        command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
    )
    (theirs,) = parse(done.stdout.splitlines())
    return differences(theirs, our_trace(environment))


def our_trace(environment: str) -> Trace:
    """Returns what our environment answers to random actions, in the form of `world.trace`.

    `load_environment` resets every environment once, and one of gymnasium a second time, with the seed. So
    the other library's environment is reset two or three times before its first env step.
    """
    config = EnvironmentConfig(suite=ours.suite(environment), name=environment)
    made = load_environment(config, _SEED)
    observation = made.reset()
    specs: list[Any] = [made.observation_spec, made.action_spec]
    limits = [
        [np.broadcast_to(bound, spec.shape).astype(float).tolist() for bound in (spec.minimum, spec.maximum)]
        for spec in specs
    ]
    steps = []
    low, high = (np.asarray(limit, np.float32) for limit in limits[1])
    for action in random_actions(low, high, _SEED, _ENV_STEPS):
        before = observation.tolist()
        step = made.step(action)
        terminated = step.discount == 0.0
        steps.append(
            [before, step.reward, terminated, step.last and not terminated, step.observation.tolist()]
        )
        observation = made.reset() if step.last else step.observation
    return json.loads(json.dumps({"limits": limits, "steps": steps}))


def differences(theirs: Trace, ours: Trace) -> list[str]:
    """Compares exactly; returns a line for unequal limits, and one for the first unequal env step."""
    found = []
    for what, their, our in zip(("observations", "actions"), theirs["limits"], ours["limits"], strict=True):
        if not np.array_equal(_finite(their), _finite(our)):
            found.append(f"limits of {what}: {their}, ours {our}")
    names = ("observation before", "reward", "terminated", "truncated", "observation after")
    if len(theirs["steps"]) != len(ours["steps"]):
        found.append(f"{len(theirs['steps'])} env steps, ours {len(ours['steps'])}")
    for index, (their, our) in enumerate(zip(theirs["steps"], ours["steps"], strict=False)):
        unequal = [name for name, a, b in zip(names, their, our, strict=True) if a != b]
        if unequal:
            found.append(f"env step {index}: {', '.join(unequal)}")
            break
    return found


def _finite(limits: Any) -> Any:
    """Replaces infinity by the greatest float32, as TF-Agents does."""
    greatest = float(np.finfo(np.float32).max)
    return np.clip(np.asarray(limits, np.float64), -greatest, greatest)
