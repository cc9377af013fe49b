"""Checks of the experiment on this machine: environment, agent, memory and disk."""

import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from actorlearner.environments.environment import Environment
from actorlearner.errors import RunError
from actorlearner.inspect.doctor.check import CheckedExperiment, Result, fail, ok, warn
from actorlearner.process.cores import collect_actors
from actorlearner.records.formatting import bytes_text

_ENV_STEPS = 50
_MAX_S = 20.0
"""Seconds after which the check of a slow environment takes no more env steps."""

_LEAVES_SHOWN = 2


def check_environment(experiment: CheckedExperiment) -> Result:
    """Checks that the environment loads, and returns valid values after random actions.

    Raises:
      ConfigurationError: the environment cannot be loaded.
      RunError: a returned value is not valid.
      Exception: any error of the environment.
    """
    from actorlearner.environments.load import episode_limit, load_environment
    from actorlearner.process.tensorflow_setup import limit_tensorflow

    limit_tensorflow(threads=1)  # Before the environment, which may use TensorFlow itself.
    config = experiment.config.environment
    environment = load_environment(config, experiment.seed)
    try:
        rate = _play(environment, experiment.seed, experiment.config.agent.action_mask)
    finally:
        environment.close()
    specs = f"{_describe(environment.observation_spec)} -> {_describe(environment.action_spec)}"
    limit = episode_limit(config)
    limited = f"limit {limit:,}" if limit else "no known limit"
    return ok(f"{specs}, {limited}, {rate:,.0f} env steps/s")


def _play(environment: Environment, seed: int, mask: str | None) -> float:
    """Takes some env steps with random actions; returns the env steps per second.

    Raises:
      RunError: a returned value is not valid.
    """
    from actorlearner.acting.policy_function import RandomPolicy
    from actorlearner.environments.batch import stack, unstack
    from actorlearner.environments.finite import all_finite
    from actorlearner.environments.guarded import problem_of
    from actorlearner.environments.specs import environment_specs

    policy = RandomPolicy(environment_specs(environment), 1, seed, mask=mask)
    observation = environment.reset()
    if not all_finite(observation):
        raise RunError("reset returned an observation that is not finite")
    began = time.perf_counter()
    taken = 0
    while taken < _ENV_STEPS and time.perf_counter() - began < _MAX_S:
        (action,) = unstack(policy(stack([observation]), np.array([taken == 0])))
        step = environment.step(action)
        taken += 1
        wrong = problem_of(step)
        if wrong:
            raise RunError(f"{wrong}, at env step {taken}")
        observation = environment.reset() if step.last else step.observation
    return taken / (time.perf_counter() - began)


def _describe(spec: Any) -> str:
    """Returns the arrays of a nest as text, as in `float32[3], uint8[84, 84, 4]`."""
    import tree

    leaves = tree.flatten(spec)
    shown = [
        f"{np.dtype(leaf.dtype).name}{list(leaf.shape) if leaf.shape else ''}"
        for leaf in leaves[:_LEAVES_SHOWN]
    ]
    more = len(leaves) - len(shown)
    return ", ".join([*shown, f"{more} more"] if more else shown)


def check_agent(experiment: CheckedExperiment) -> Result:
    """Checks that the algorithm can act in this environment.

    Raises:
      ConfigurationError: the algorithm cannot.
    """
    parameters = sum(int(np.prod(variable.shape)) for variable in experiment.agent.agent.variables)
    return ok(f"{experiment.config.agent.name}, with {parameters:,} parameters in its networks")


_OTHER_ROLES = 3
"""Replay server, eval actor and learner."""


def check_memory(experiment: CheckedExperiment) -> Result:
    """Checks that a full replay and the processes of local mode fit into memory.

    Raises:
      ConfigurationError: replay does not fit; the replay server would refuse to start.
    """
    from actorlearner.process.ram import available_bytes
    from actorlearner.records.run_directory import RunDirectory
    from actorlearner.replay import capacity
    from actorlearner.replay.checkpoints import saved_transitions

    config, layout = experiment.config, experiment.layout
    saved = saved_transitions(RunDirectory(experiment.run_dir).replay_checkpoints)
    capacity.check_memory(config, layout, saved)
    available = available_bytes()
    replay = capacity.experience_bytes(capacity.capacity_of(config, layout), layout)
    count = _OTHER_ROLES + collect_actors(config.collect)
    processes = count * capacity.PROCESS_BYTES
    needed = f"replay {bytes_text(replay)}, {count} processes {bytes_text(processes)}"
    found = f"{needed}; {bytes_text(available)} available"
    if replay + processes > available:
        key = capacity.capacity_key(layout)
        return warn(f"{found}: lower {key} or collect.actors, or run roles elsewhere")
    return ok(found)


_SAVED_MODELS = 3
_GRAPHS_BYTES = 2 * 2**20
"""Bytes of a SavedModel without its variables."""

_SLOTS = 2
"""Variables that Adam keeps for each trained variable."""


def check_disk(experiment: CheckedExperiment) -> Result:
    """Checks that the run directory is writable and has room for the checkpoints of a full replay."""
    from actorlearner.replay.capacity import capacity_key

    folder = _nearest(experiment.run_dir)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"actorlearner")
    except OSError as error:
        return fail(f"{folder} cannot be written to, {error.strerror}: choose another --run_dir")
    replay, learner = _needed(experiment)
    free, held = shutil.disk_usage(folder).free, _held(experiment.run_dir / "checkpoints")
    found = (
        f"checkpoints: replay {bytes_text(replay)}, learner {bytes_text(learner)}; {bytes_text(free)} free"
    )
    if replay + learner > free + held:
        key = capacity_key(experiment.layout)
        return fail(f"{found} in {folder}: lower {key}, or choose another --run_dir")
    return ok(found)


def _nearest(path: Path) -> Path:
    """Returns the directory, or its closest parent that exists."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _needed(experiment: CheckedExperiment) -> tuple[int, int]:
    """Returns the bytes of the checkpoints of replay and of the learner, including one being written each."""
    from actorlearner.learning import checkpoint
    from actorlearner.replay import capacity, checkpoints

    layout = experiment.layout
    one = capacity.checkpoint_bytes(capacity.capacity_of(experiment.config, layout), layout)
    agent = _bytes(experiment.agent.agent.variables) * (1 + _SLOTS) * (checkpoint.KEPT + 1)
    policies = (_bytes(experiment.agent.policy_variables) + _GRAPHS_BYTES) * _SAVED_MODELS
    return one * (checkpoints.KEPT + 1), agent + policies


def _bytes(variables: Sequence[Any]) -> int:
    return sum(variable.shape.num_elements() * variable.dtype.size for variable in variables)


def _held(checkpoints: Path) -> int:
    """Returns the bytes of existing checkpoints, which later ones replace."""
    return sum(path.stat().st_size for path in checkpoints.rglob("*") if path.is_file())
