"""Checks that the configured environment exists, before anything starts."""

import dataclasses
import importlib
import importlib.machinery
import inspect
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

from actorlearner.config.checks import can_be_looked_up
from actorlearner.config.own_code import unloadable
from actorlearner.config.problems import closest, problem, show
from actorlearner.config.schema import Config, EnvironmentConfig
from actorlearner.environments.quiet import quiet_output
from actorlearner.errors import ConfigurationError

_KWARGS = "environment.kwargs"
_ACTOR_KWARGS = "collect.actor_kwargs"
_NAME = "environment.name"
_SUITE = "environment.suite"
_SUGGESTIONS = 3
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_CALLABLE = "module:callable that makes an environment"
_REGISTERED_BY = {"gym": "gym", "pybullet": "gym or pybullet_envs", "gymnasium": "gymnasium"}
_DM_CONTROL = "dm_control"


def check_environment(environment: EnvironmentConfig, kwargs_key: str = _KWARGS) -> None:
    """Checks an environment's name, module and keyword arguments without making the environment.

    Args:
      environment: the environment section of the configuration.
      kwargs_key: the key that the keyword arguments come from, for error lines.

    Raises:
      ConfigurationError: the environment does not exist, its module cannot be imported, or it does not take
        the keyword arguments.
    """
    if environment.suite == _DM_CONTROL:
        _check_task(environment)
        return
    find = _find_registered if environment.suite in _REGISTERED_BY else _find_custom
    make, arguments = find(environment)
    if callable(make):
        _check_call(make, arguments, environment, kwargs_key)


def environment_problems(config: Config, broken: Collection[str] = ()) -> Sequence[str]:
    """Returns the problems that `check_environment` raises, one line each.

    Also checks the keyword arguments of evaluations and of the first collect actor. Returns nothing if a key
    of the section is in `broken`, because it was refused already.
    """
    if not can_be_looked_up(config.environment) or any(key.startswith("environment.") for key in broken):
        return ()
    lists = {} if _ACTOR_KWARGS in broken else config.collect.actor_kwargs
    first_actor = {name: values[0] for name, values in lists.items() if isinstance(values, list) and values}
    added = {_KWARGS: {}, "evaluate.kwargs": config.evaluate.kwargs, _ACTOR_KWARGS: first_actor}
    for key, kwargs in added.items():
        merged = {**config.environment.kwargs, **kwargs}
        try:
            check_environment(dataclasses.replace(config.environment, kwargs=merged), key)
        except ConfigurationError as error:
            return error.problems
    return ()


def registered_spec(environment: EnvironmentConfig) -> Any:
    """Returns the spec that gym, pybullet or gymnasium has registered under the environment's name.

    As in `gym.make`, a name may begin with the module whose import registers it: "ale_py:ALE/Pong-v5".

    Args:
      environment: an environment of one of these suites.

    Raises:
      ConfigurationError: no such environment is registered, or a module cannot be imported.
    """
    module, colon, name = environment.name.rpartition(":")
    if module:
        _import(module, _NAME, environment.name, _advice_on_missing(module))
    registered = _registry(environment.suite)
    if name not in registered:
        wrong = f"unknown environment {show(environment.name)} in suite {environment.suite}"
        allowed = f"a name that {_REGISTERED_BY[environment.suite]} registers, or module:name"
        meant = [f"{module}{colon}{each}" for each in closest(name, registered, _SUGGESTIONS)]
        raise ConfigurationError([problem(_NAME, wrong, allowed, meant)])
    return registered[name]


def _registry(suite: str) -> dict[str, Any]:
    """Returns a suite's registered specs by name; importing pybullet_envs registers pybullet's."""
    if suite == "gymnasium":
        return dict(_import("gymnasium", _SUITE, suite).registry)
    registration = _import("gym.envs.registration", _SUITE, suite)
    if suite == "pybullet":
        _import("pybullet_envs", _SUITE, suite)
    specs = registration.registry.env_specs
    return {name: specs[name] for name in specs}


def _find_registered(environment: EnvironmentConfig) -> tuple[Any, list[str]]:
    """Returns the callable of a registered environment, if it has one, and its positional arguments."""
    make = registered_spec(environment).entry_point
    if isinstance(make, str):
        module_name, _, attribute = make.partition(":")
        make = getattr(_import(module_name, _NAME, environment.name), attribute, None)
    return make, []


def _check_task(environment: EnvironmentConfig) -> None:
    allowed = "pip install 'actorlearner[dm-control]' in this environment, or another suite"
    tasks = _import("dm_control.suite", _SUITE, _DM_CONTROL, allowed).ALL_TASKS
    names = [f"{domain}-{task}" for domain, task in tasks]
    if environment.name not in names:
        wrong = f"unknown task {show(environment.name)}"
        meant = closest(environment.name, names, _SUGGESTIONS)
        raise ConfigurationError([problem(_NAME, wrong, "domain-task, as in cheetah-run", meant)])


def _find_custom(environment: EnvironmentConfig) -> tuple[Any, list[str]]:
    """Returns the user's callable and its positional arguments."""
    suite = environment.suite
    module_name, _, attribute = suite.partition(":")
    module = _import(module_name, _SUITE, suite, _advice_on_missing(module_name))
    missing = object()
    make = _attempt(lambda: getattr(module, attribute, missing), _SUITE, suite, _CALLABLE)
    if callable(make):
        return make, [environment.name] if environment.name else []
    fault = "does not exist" if make is missing else "is not callable"
    wrong = f"{show(suite)} cannot be loaded: {attribute} {fault} in {module_name}"
    names = [name for name, value in getattr(module, "__dict__", {}).items() if _is_public(name, value)]
    raise ConfigurationError([problem(_SUITE, wrong, _CALLABLE, closest(attribute, names))])


def _is_public(name: str, value: Any) -> bool:
    return callable(value) and not name.startswith("_")


def _check_call(
    make: Callable[..., Any], arguments: Sequence[str], environment: EnvironmentConfig, kwargs_key: str
) -> None:
    """Refuses arguments that `make` does not take; a decorator may add the missing ones."""
    try:
        signature = inspect.signature(make)
    except (TypeError, ValueError):  # No signature, for example of a C function.
        return
    try:
        signature.bind_partial(*arguments, **environment.kwargs)
    except TypeError as error:
        known = [name for name, each in signature.parameters.items() if each.kind in _BY_NAME]
        line = _misfit(environment, kwargs_key, str(error), known[len(arguments) :])
        raise ConfigurationError([line]) from None


def _misfit(environment: EnvironmentConfig, kwargs_key: str, reason: str, known: Sequence[str]) -> str:
    """Returns the error line about unsuitable arguments; `known` are the keywords that `make` takes."""
    key, value = (kwargs_key, environment.kwargs) if environment.kwargs else (_NAME, environment.name)
    called = environment.name if environment.suite in _REGISTERED_BY else environment.suite
    wrong = f"{show(value)} cannot be passed to {called}: {reason}"
    meant = [close for name in environment.kwargs if name not in known for close in closest(name, known)]
    allowed = f"any of {', '.join(known)}" if known else "nothing"
    if not environment.kwargs:
        allowed = "empty (environment.name=), or a callable that takes a name"
    return problem(key, wrong, allowed, meant)


def _advice_on_missing(module: str) -> str:
    """Returns what is allowed instead of a module that Python cannot find; empty if it can."""
    package = module.partition(".")[0]
    if package in sys.builtin_module_names or importlib.machinery.PathFinder.find_spec(package):
        return ""
    return (
        f"a module that Python finds: start this in the folder that has {package}, or put that folder into "
        "PYTHONPATH"
    )


def _import(module: str, key: str, value: str, allowed: str = "") -> Any:
    """Imports `module`, which `value` of `key` needs."""
    allowed = allowed or f"an environment whose module {module} can be imported"
    return _attempt(lambda: importlib.import_module(module), key, value, allowed)


def _attempt(call: Callable[[], Any], key: str, value: str, allowed: str) -> Any:
    """Returns the result of `call`; anything raised becomes a one-line problem of `key`."""
    try:
        with quiet_output():
            return call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ConfigurationError([unloadable(value, key, allowed, error)]) from None
