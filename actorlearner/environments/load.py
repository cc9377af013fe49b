"""Loads the environment that a configuration names, seeded and without output."""

import contextlib
import copy
import importlib
import inspect
import logging
import math
from collections.abc import Callable, Mapping
from typing import Any

from actorlearner.config.checks import SUITES
from actorlearner.config.own_code import raised_at
from actorlearner.config.problems import problem, show
from actorlearner.config.schema import EnvironmentConfig
from actorlearner.environments.adapter import Adapter
from actorlearner.environments.checks import check_environment, registered_spec
from actorlearner.environments.dm_control_adapter import DmControlAdapter, make_task
from actorlearner.environments.environment import Environment
from actorlearner.environments.gym_adapter import GymAdapter
from actorlearner.environments.info import info_keys
from actorlearner.environments.py_environment_adapter import PyEnvironmentAdapter, is_py_environment
from actorlearner.environments.quiet import quiet_output
from actorlearner.environments.wrappers import ActionRepeat, FrameStack, TimeLimit
from actorlearner.errors import ConfigurationError

_log = logging.getLogger(__name__)

_NAME = "environment.name"
_SUITE = "environment.suite"
_GYM_MEMBERS = ("reset", "step", "observation_space", "action_space")


def load_environment(
    config: EnvironmentConfig,
    seed: int,
    warn: Callable[[str], None] = _log.info,
    role: str = "",
    index: int = 0,
) -> Environment:
    """Makes an environment with its wrappers, seeds it and resets it once.

    The first reset starts the simulator, may print, and shows whether observations fit their space.

    Args:
      config: the environment section of the configuration.
      seed: the environment's seed, in [0, 2**31).
      warn: called with one line if the environment cannot be seeded.
      role: of the process, such as collect-actor; passed to a callable that takes it.
      index: of the process among those of its role; passed to a callable that takes it.

    Raises:
      ConfigurationError: the environment does not exist or cannot be made, seeded or reset.
    """
    check_environment(config)
    with quiet_output():
        registered = config.suite in SUITES
        made = _make_registered(config) if registered else _make_custom(config, role, index)
        adapter = _adapt(config, made)
        try:
            seeded = _attempt(lambda: adapter.seed(seed), _NAME, f"{_title(config)} cannot be seeded")
            _attempt(adapter.reset, _NAME, f"{_title(config)} cannot be reset")
        except ConfigurationError:
            with contextlib.suppress(Exception):  # The next attempt may need its simulator or licence.
                adapter.close()
            raise
    if not seeded:
        warn(f"{_title(config)} takes no seed: its episodes differ from run to run, whatever the key seed is")
    environment: Environment = adapter
    if config.max_episode_steps is not None and not registered:
        environment = TimeLimit(environment, config.max_episode_steps)
    if config.action_repeat > 1:
        environment = ActionRepeat(environment, config.action_repeat)
    if config.frame_stack > 1:
        environment = FrameStack(environment, config.frame_stack)
    return environment


def episode_limit(config: EnvironmentConfig) -> int | None:
    """Returns the env steps after which an episode is truncated at the latest; None if unknown or never.

    With dm_control, makes the task to read its limit.

    Raises:
      ConfigurationError: the environment does not exist or cannot be made.
    """
    limit: int | None = config.max_episode_steps
    if limit is None and config.suite == "dm_control":
        task: DmControlAdapter = _make_registered(config)
        limit = task.step_limit
        task.close()
    elif limit is None and config.suite in SUITES:
        limit = registered_spec(config).max_episode_steps
    return limit and math.ceil(limit / config.action_repeat)


def _make_registered(config: EnvironmentConfig) -> Any:
    """Makes an environment of one of the known suites, with the configured time limit if there is one."""
    if config.suite == "dm_control":
        return _construct(config, lambda: make_task(config.name, config.max_episode_steps, config.kwargs))
    if config.suite == "gymnasium":
        return _construct(config, lambda: _make_gymnasium(config))
    spec = copy.deepcopy(registered_spec(config))
    if config.max_episode_steps is not None:
        # In a copy of the registered spec: other environments of this name keep their limit.
        spec.max_episode_steps = config.max_episode_steps
    return _construct(config, lambda: spec.make(**config.kwargs))


def _make_gymnasium(config: EnvironmentConfig) -> Any:
    import gymnasium

    # The render mode is fixed when the environment is made; it costs nothing until the environment renders.
    spec = registered_spec(config)
    entry = spec.entry_point
    made = gymnasium.envs.registration.load_env_creator(entry) if isinstance(entry, str) else entry
    modes = (getattr(made, "metadata", None) or {}).get("render_modes", ())
    films = "rgb_array" in modes and any(
        parameter.name == "render_mode" or parameter.kind is parameter.VAR_KEYWORD
        for parameter in _parameters(made).values()
    )
    kwargs = {**({"render_mode": "rgb_array"} if films else {}), **config.kwargs}
    # The checker would warn of what the adapter handles, such as float64 actions.
    return gymnasium.make(
        spec, max_episode_steps=config.max_episode_steps, disable_env_checker=True, **kwargs
    )


def _make_custom(config: EnvironmentConfig, role: str, index: int) -> Any:
    """Calls the user's callable with the name, if configured, and the keyword arguments.

    A callable with a parameter `role` or `index` receives the role or the index of this process.
    """
    module, _, attribute = config.suite.partition(":")
    make = getattr(importlib.import_module(module), attribute)
    names = [config.name] if config.name else []
    place = {key: value for key, value in (("role", role), ("index", index)) if key in _parameters(make)}
    return _construct(config, lambda: make(*names, **{**place, **config.kwargs}))


def _parameters(make: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(make).parameters
    except (TypeError, ValueError):  # No signature, for example of a C function.
        return {}


def _construct(config: EnvironmentConfig, make: Callable[[], Any]) -> Any:
    if not config.kwargs:
        return _attempt(make, _NAME, f"{_title(config)} cannot be made")
    return _attempt(make, "environment.kwargs", f"{_title(config)} cannot be made with {show(config.kwargs)}")


def _adapt(config: EnvironmentConfig, environment: Any) -> Adapter:
    """Adapts an environment of gym or TF-Agents to `Environment`."""
    if isinstance(environment, DmControlAdapter):
        return environment
    keys = info_keys(config.info_metrics)
    if is_py_environment(environment):
        wrong = f"{_title(config)} has specs that cannot be used"
        return _attempt(lambda: PyEnvironmentAdapter(environment, keys), _NAME, wrong)
    missing = [member for member in _GYM_MEMBERS if not hasattr(environment, member)]
    if missing:
        made = type(environment).__name__
        wrong = f"{show(config.suite)} returned {made}, which lacks {', '.join(missing)}"
        allowed = "a gym.Env, gymnasium.Env or TF-Agents PyEnvironment"
        raise ConfigurationError([problem(_SUITE, wrong, allowed)])
    wrong = f"{_title(config)} has a space without a spec"
    return _attempt(lambda: GymAdapter(environment, keys), _NAME, wrong)


def _attempt(call: Callable[[], Any], key: str, wrong: str) -> Any:
    """Returns the result of `call`; an exception becomes a one-line problem of `key`."""
    try:
        return call()
    except ConfigurationError:
        raise
    except Exception as error:  # User code may raise anything.
        reason = f"{type(error).__name__}: {error}{raised_at(error)}"
        raise ConfigurationError([problem(key, f"{wrong}: {reason}")]) from error


def _title(config: EnvironmentConfig) -> str:
    return show(config.name or config.suite)
