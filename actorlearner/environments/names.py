"""Finds out whether the configured environment exists, before anything starts."""

import importlib
from typing import Any

from actorlearner.config.problems import DEFAULT_SOURCE, Sources, closest, problem, show
from actorlearner.config.schema import EnvironmentConfig
from actorlearner.environments.quiet import quiet_output
from actorlearner.errors import ConfigurationError

_NAME = "environment.name"
_SUITE = "environment.suite"
_SUGGESTIONS = 3
_REGISTERED_BY = {"gym": "gym", "pybullet": "gym or pybullet_envs"}


def check_environment(environment: EnvironmentConfig, sources: Sources | None = None) -> None:
    """Looks the environment up and imports the module that defines it, but does not make it.

    Args:
      environment: the environment section.
      sources: where its keys come from, for the message.

    Raises:
      ConfigurationError: there is no such environment, or its module cannot be imported.
    """
    sources = sources or {}
    if environment.suite in _REGISTERED_BY:
        _check_registered(environment, sources)
    else:
        _check_custom(environment.suite, sources)


def _check_registered(environment: EnvironmentConfig, sources: Sources) -> None:
    registered = _registered(environment.suite, sources)
    name = environment.name
    source = sources.get(_NAME, DEFAULT_SOURCE)
    if name not in registered:
        wrong = f"unknown environment {show(name)} in suite {environment.suite}"
        allowed = f"a name that {_REGISTERED_BY[environment.suite]} registers"
        raise ConfigurationError(
            [problem(_NAME, wrong, source, allowed, closest(name, registered, _SUGGESTIONS))]
        )
    entry_point = registered[name].entry_point
    if isinstance(entry_point, str):
        _import(entry_point.partition(":")[0], _NAME, name, source)


def _registered(suite: str, sources: Sources) -> dict[str, Any]:
    """The registry of gym by name; pybullet_envs adds its environments when it is imported."""
    source = sources.get(_SUITE, DEFAULT_SOURCE)
    registration = _import("gym.envs.registration", _SUITE, suite, source)
    if suite == "pybullet":
        _import("pybullet_envs", _SUITE, suite, source)
    specs = registration.registry.env_specs
    return {name: specs[name] for name in specs}


def _check_custom(suite: str, sources: Sources) -> None:
    module_name, _, attribute = suite.partition(":")
    source = sources.get(_SUITE, DEFAULT_SOURCE)
    module = _import(module_name, _SUITE, suite, source)
    if callable(getattr(module, attribute, None)):
        return
    wrong = "is not callable" if hasattr(module, attribute) else "does not exist"
    names = [name for name, value in vars(module).items() if callable(value) and name[0] != "_"]
    line = problem(
        _SUITE,
        f"{show(suite)} cannot be loaded: {attribute} {wrong} in {module_name}",
        source,
        "module:callable that makes an environment",
        closest(attribute, names),
    )
    raise ConfigurationError([line])


def _import(module: str, key: str, value: str, source: str) -> Any:
    """Imports `module`, which the `value` of `key` needs."""
    try:
        with quiet_output():
            return importlib.import_module(module)
    except (Exception, SystemExit) as error:  # Whatever the code of that module raises.
        reason = next(iter(str(error).splitlines()), "")
        because = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
        wrong = f"{show(value)} cannot be loaded: {because}"
        allowed = f"what can be imported here, as {module} cannot"
        raise ConfigurationError([problem(key, wrong, source, allowed)]) from None
