"""Checks of keys against each other, and of text whose form a type cannot tell."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator

from actorlearner.config.problems import DEFAULT_SOURCE, Sources, closest, problem, show
from actorlearner.config.schema import Config, EnvironmentConfig

SUITES = ("pybullet", "gym")
"""The suites that come with the package; any other is module:callable."""

_MOST_REPLICAS = 64
_IMPORTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
_PROFILE = re.compile(r"([0-9]{1,15}),([0-9]{1,15})")
_MIRRORED = re.compile(r"mirrored:([0-9]{1,9})")
MULTI_WORKER = "multi_worker_mirrored"
"""The strategy of learners that train as one, see `actorlearner.learning.cluster`."""

_STRATEGIES = ("default", "mirrored", MULTI_WORKER, "tpu")

Check = Callable[[Config, Sources, Collection[str]], Iterable[str]]
"""Returns one line for each problem; takes the configuration, where its keys come from, and the keys that
were refused already, from which nothing is concluded."""


def can_be_looked_up(environment: EnvironmentConfig) -> bool:
    """Whether suite and name have a form that may denote an environment."""
    if environment.suite in SUITES:
        return bool(environment.name)
    return _IMPORTED.fullmatch(environment.suite) is not None


def replicas(strategy: str) -> int | None:
    """The number of replicas that a strategy's name tells: N for mirrored:N, otherwise None."""
    match = _MIRRORED.fullmatch(strategy)
    return int(match[1]) if match else None


def profiled_steps(profile: str | None) -> tuple[int, int] | None:
    """The train steps at which a profile begins and ends; None for no profile, or what is none."""
    match = _PROFILE.fullmatch(profile or "")
    if match is None or not int(match[1]) < int(match[2]):
        return None
    return int(match[1]), int(match[2])


def cross_problems(config: Config, sources: Sources, broken: Collection[str] = ()) -> list[str]:
    """What cannot work although every key by itself is of the right type and in range.

    Args:
      config: the configuration.
      sources: where the keys that were given come from.
      broken: keys that were refused already; checks that depend on them are left out.
    """

    def works(*keys: str) -> bool:
        return not any(key in broken for key in keys)

    problems: list[str] = []
    if works("environment.suite"):
        problems += _environment_problems(config, sources, works("environment.name"))
    if works("learn.strategy"):
        problems += _strategy_problems(config, sources, works("learn.batch_size"))
    if (
        works("learn.profile")
        and config.learn.profile is not None
        and not profiled_steps(config.learn.profile)
    ):
        problems.append(cannot_work(config, "learn.profile", sources, "START,STOP, as in 1000,1100, or null"))
    if works("callbacks"):
        problems += _callback_problems(config, sources)
    return problems


def _callback_problems(config: Config, sources: Sources) -> Iterator[str]:
    source = sources.get("callbacks", DEFAULT_SOURCE)
    for name in dict.fromkeys(config.callbacks):
        if not _IMPORTED.fullmatch(name):
            yield problem("callbacks", f"{show(name)} cannot work", source, "module:Class of a callback")
        elif config.callbacks.count(name) > 1:
            yield problem("callbacks", f"{show(name)} is given twice", source, "each only once")


def _environment_problems(config: Config, sources: Sources, check_name: bool) -> Iterator[str]:
    suite = config.environment.suite
    if can_be_looked_up(config.environment):
        return
    if suite not in SUITES:
        source = sources.get("environment.suite", DEFAULT_SOURCE)
        allowed = f"{', '.join(SUITES)}, or module:callable for your own"
        wrong = f"unknown suite {show(suite)}"
        yield problem("environment.suite", wrong, source, allowed, closest(suite, SUITES))
    elif check_name:
        yield cannot_work(config, "environment.name", sources, f"a registered name in suite {suite}")


def _strategy_problems(config: Config, sources: Sources, check_batch: bool) -> Iterator[str]:
    strategy = config.learn.strategy
    count = replicas(strategy)
    if strategy not in _STRATEGIES and not (count and count <= _MOST_REPLICAS):
        source = sources.get("learn.strategy", DEFAULT_SOURCE)
        allowed = f"{', '.join(_STRATEGIES)}, or mirrored:N with N from 1 to {_MOST_REPLICAS}"
        meant = closest(strategy, _STRATEGIES) if count is None else []
        yield problem("learn.strategy", f"unknown strategy {show(strategy)}", source, allowed, meant)
    elif count and check_batch and config.learn.batch_size % count:
        yield cannot_work(
            config, "learn.batch_size", sources, f"a multiple of the {count} replicas of learn.strategy"
        )


def cannot_work(config: Config, key: str, sources: Sources, allowed: str) -> str:
    """Returns the line about a value that is valid by itself and cannot work here."""
    section, _, name = key.partition(".")
    value = getattr(getattr(config, section), name)
    return problem(key, f"{show(value)} cannot work", sources.get(key, DEFAULT_SOURCE), allowed)
