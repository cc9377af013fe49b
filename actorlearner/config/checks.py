"""Checks of keys against each other, and of text whose form the type does not determine."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator

from actorlearner.config.problems import closest, problem, show
from actorlearner.config.schema import Config, EnvironmentConfig

SUITES = ("pybullet", "gym", "gymnasium", "dm_control")
"""The suites that come with the package; any other is module:callable."""

MULTI_WORKER = "multi_worker_mirrored"
"""The strategy of a group of learners."""

_STRATEGIES = ("default", "mirrored", MULTI_WORKER, "tpu")
_MAX_REPLICAS = 64
_IMPORTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
_PROFILE = re.compile(r"([0-9]{1,15}),([0-9]{1,15})")
_MIRRORED = re.compile(r"mirrored:([0-9]{1,9})")

Check = Callable[[Config, Collection[str]], Iterable[str]]
"""Takes a configuration and the keys that were refused already; returns one line for each problem, without
the source of its key. The configuration has defaults for refused keys, so a check must not rely on them."""


def can_be_looked_up(environment: EnvironmentConfig) -> bool:
    """Returns whether suite and name are well-formed; the environment need not exist."""
    if environment.suite in SUITES:
        return bool(environment.name)
    return _IMPORTED.fullmatch(environment.suite) is not None


def imports_own_code(environment: EnvironmentConfig) -> bool:
    """Returns whether looking the environment up imports a module of the user's."""
    return environment.suite not in SUITES or ":" in environment.name


def mirrored_replicas(strategy: str) -> int | None:
    """Returns N for the strategy mirrored:N, and None for others."""
    match = _MIRRORED.fullmatch(strategy)
    return int(match[1]) if match else None


def profiled_steps(profile: str | None) -> tuple[int, int] | None:
    """Returns the first and last train step of START,STOP; None for anything else."""
    match = _PROFILE.fullmatch(profile or "")
    if match is None or not int(match[1]) < int(match[2]):
        return None
    return int(match[1]), int(match[2])


def cross_problems(config: Config, broken: Collection[str] = ()) -> list[str]:
    """A Check that finds what cannot work although each value has the right type and range."""
    problems: list[str] = []
    if "environment.suite" not in broken:
        problems += _environment_problems(config, "environment.name" not in broken)
    if "learn.strategy" not in broken:
        problems += _strategy_problems(config, "learn.batch_size" not in broken)
    if "environment.info_metrics" not in broken:
        problems += _info_problems(config)
    profile = config.learn.profile
    if "learn.profile" not in broken and profile is not None and not profiled_steps(profile):
        problems.append(cannot_work(config, "learn.profile", "START,STOP, as in 1000,1100, or null"))
    if "collect.actor_kwargs" not in broken:
        problems += _actor_kwargs_problems(config)
    if "callbacks" not in broken:
        problems += _callback_problems(config.callbacks)
    return problems


def _actor_kwargs_problems(config: Config) -> Iterator[str]:
    for name, values in config.collect.actor_kwargs.items():
        if not isinstance(values, list) or not values:
            key = f"collect.actor_kwargs.{name}"
            yield problem(key, f"{show(values)} cannot work", "a list with a value for each actor")


def cannot_work(config: Config, key: str, allowed: str) -> str:
    """Returns the line about a value that is valid by itself and cannot work here."""
    section, _, name = key.partition(".")
    value = getattr(getattr(config, section), name)
    return problem(key, f"{show(value)} cannot work", allowed)


def _info_problems(config: Config) -> Iterator[str]:
    key = "environment.info_metrics"
    metrics = config.environment.info_metrics
    for metric in dict.fromkeys(metrics):
        if metric in ("", "sum:", "mean:"):
            yield problem(key, f"{show(metric)} names no key", "KEY, sum:KEY or mean:KEY")
        elif metrics.count(metric) > 1:
            yield problem(key, f"{show(metric)} is given twice", "each only once")


def _callback_problems(callbacks: list[str]) -> Iterator[str]:
    for name in dict.fromkeys(callbacks):
        if not _IMPORTED.fullmatch(name):
            yield problem("callbacks", f"{show(name)} cannot work", "module:Class of a callback")
        elif callbacks.count(name) > 1:
            yield problem("callbacks", f"{show(name)} is given twice", "each only once")


def _environment_problems(config: Config, check_name: bool) -> Iterator[str]:
    suite = config.environment.suite
    if can_be_looked_up(config.environment):
        return
    if suite not in SUITES:
        allowed = f"{', '.join(SUITES)}, or module:callable for your own"
        wrong = f"unknown suite {show(suite)}"
        yield problem("environment.suite", wrong, allowed, closest(suite, SUITES))
    elif check_name:
        yield cannot_work(config, "environment.name", f"a registered name in suite {suite}")


def _strategy_problems(config: Config, check_batch: bool) -> Iterator[str]:
    strategy = config.learn.strategy
    count = mirrored_replicas(strategy)
    if strategy not in _STRATEGIES and not (count and count <= _MAX_REPLICAS):
        allowed = f"{', '.join(_STRATEGIES)}, or mirrored:N with N from 1 to {_MAX_REPLICAS}"
        meant = closest(strategy, _STRATEGIES) if count is None else []
        yield problem("learn.strategy", f"unknown strategy {show(strategy)}", allowed, meant)
    elif count and check_batch and config.learn.batch_size % count:
        allowed = f"a multiple of the {count} replicas of learn.strategy"
        yield cannot_work(config, "learn.batch_size", allowed)
    if config.learn.xla and strategy != "default":
        yield cannot_work(config, "learn.xla", f"false with learn.strategy {strategy}")
