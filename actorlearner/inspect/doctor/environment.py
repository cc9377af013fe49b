"""The environment and the agent, in this process."""

import time
from typing import Any

import numpy as np

from actorlearner.config.checks import SUITES
from actorlearner.config.schema import EnvironmentConfig
from actorlearner.environments.environment import Environment
from actorlearner.errors import RunError
from actorlearner.inspect.doctor.result import Result, ok
from actorlearner.inspect.doctor.subject import Subject

_ENV_STEPS = 50
_LONGEST_S = 20.0
"""Seconds after which a slow environment has taken env steps enough."""

_LEAVES_SHOWN = 2


def check_environment(subject: Subject) -> Result:
    """Whether the environment loads, and answers random actions with what can be used.

    Raises:
      ConfigurationError: it cannot be loaded.
      RunError: an answer cannot be used.
      Exception: whatever the environment raises.
    """
    from actorlearner.environments.load import load_environment
    from actorlearner.process.devices import use_cpu

    use_cpu(threads=1)  # Before the environment, which may use TensorFlow itself.
    config = subject.config.environment
    environment = load_environment(config, subject.seed)
    try:
        rate = _play(environment, subject.seed)
    finally:
        environment.close()
    specs = f"{_describe(environment.observation_spec)} -> {_describe(environment.action_spec)}"
    return ok(f"{specs}, {_time_limit(config)}, {rate:,.0f} env steps/s")


def _play(environment: Environment, seed: int) -> float:
    """Takes some env steps with random actions; returns how many a second.

    Raises:
      RunError: an answer cannot be used.
    """
    from tf_agents.specs import array_spec

    from actorlearner.environments.finite import all_finite
    from actorlearner.environments.guarded import problem_of

    random = np.random.RandomState(seed)
    if not all_finite(environment.reset()):
        raise RunError("reset returned an observation that is not finite")
    began = time.perf_counter()
    taken = 0
    while taken < _ENV_STEPS and time.perf_counter() - began < _LONGEST_S:
        step = environment.step(array_spec.sample_spec_nest(environment.action_spec, random))
        taken += 1
        wrong = problem_of(step)
        if wrong:
            raise RunError(f"{wrong}, at env step {taken}")
        if step.last:
            environment.reset()
    return taken / (time.perf_counter() - began)


def _describe(spec: Any) -> str:
    """The arrays of a nest, as in `float32[3], uint8[84, 84, 4]`."""
    import tree

    leaves = tree.flatten(spec)
    shown = [
        f"{np.dtype(leaf.dtype).name}{list(leaf.shape) if leaf.shape else ''}"
        for leaf in leaves[:_LEAVES_SHOWN]
    ]
    more = len(leaves) - len(shown)
    return ", ".join([*shown, f"{more} more"] if more else shown)


def _time_limit(config: EnvironmentConfig) -> str:
    """Env steps after which an episode is truncated, as far as can be known."""
    limit = config.max_episode_steps
    if limit is None and config.suite in SUITES:
        import gym

        limit = gym.spec(config.name).max_episode_steps
    return f"limit {limit:,}" if limit else "no known limit"


def check_agent(subject: Subject) -> Result:
    """Whether the algorithm can act in this environment.

    Raises:
      ConfigurationError: it cannot.
    """
    numbers = sum(int(np.prod(variable.shape)) for variable in subject.agent.agent.variables)
    return ok(f"{subject.config.agent.name}, with {numbers:,} numbers in its networks")
