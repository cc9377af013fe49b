"""Checks of a configuration against Reverb's tables and rate limiter, and against the agent's experience."""

from collections.abc import Collection, Iterator
from typing import Protocol

from actorlearner.agents.experience import Experience, Iteration
from actorlearner.agents.registry import find_builder
from actorlearner.config.checks import MULTI_WORKER, cannot_work, replicas
from actorlearner.config.keys import config_keys
from actorlearner.config.problems import Sources
from actorlearner.config.resolved import declared_values
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError
from actorlearner.replay.item_size import MAX_ITEMS, max_transitions_per_item
from actorlearner.replay.rate_limit import min_error_buffer

_OF_REPLAY = (
    "replay.capacity",
    "replay.min_size",
    "replay.updates_per_env_step",
    "replay.error_buffer",
    "replay.transitions_per_item",
    "collect.initial_random_steps",
    "collect.initial_policy",
    "learn.publish_interval",
    "learn.train_steps_per_call",
)
"""Keys that mean nothing for experience that is consumed once.

They may be given with their defaults: files with all keys of a run are configurations, too.
"""


_Found = tuple[tuple[str, ...], str]
"""A problem: the keys that it depends on, and its line."""


class _Problem(Protocol):
    """Makes a problem of a key, and of other keys that it depends on."""

    def __call__(self, key: str, allowed: str, *others: str) -> _Found: ...


def replay_problems(config: Config, sources: Sources, broken: Collection[str] = ()) -> list[str]:
    """Returns one line for each key that no table has room for, or with which the run cannot work.

    Args:
      config: the configuration.
      sources: where the given keys come from.
      broken: keys that were refused already; checks that depend on them are skipped.
    """

    def problem(key: str, allowed: str, *others: str) -> _Found:
        return (key, *others), cannot_work(config, key, sources, allowed)

    experience = _experience(config, broken)
    found = list(_sequence_problems(problem, config, experience))
    if experience.iteration is None:
        found += _table_problems(problem, config, experience)
    elif experience.length is not None:
        found += _iteration_problems(problem, config, experience.iteration, experience.length)
    return [line for keys, line in found if not {*keys}.intersection(broken)]


def _experience(config: Config, broken: Collection[str]) -> Experience:
    if any(key.startswith("agent") for key in broken):
        return Experience()
    try:
        return find_builder(config.agent.name).experience(config.agent)
    except ConfigurationError:  # The name of the agent is refused elsewhere.
        return Experience()


def _sequence_problems(problem: _Problem, config: Config, experience: Experience) -> Iterator[_Found]:
    """Yields problems of an agent that learns from more than single transitions."""
    if config.replay.layout != "packed" and experience != Experience():
        yield problem("replay.layout", f"packed, with what agent.name {config.agent.name} learns from")
    if experience.length is not None and config.agent.n_step != 1:
        yield problem("agent.n_step", "1, for an agent that learns from sequences")
    if experience.length is not None and experience.stride > experience.length:
        yield problem("agent.sequence_stride", f"at most agent.sequence_length ({experience.length})")


def _iteration_problems(
    problem: _Problem, config: Config, iteration: Iteration, length: int
) -> Iterator[_Found]:
    """Yields problems of experience that is consumed once, in iterations of fragments of this length."""
    keys, values = config_keys(type(config.agent)), declared_values(config)
    for key in _OF_REPLAY:
        if values[key] != keys[key].default:
            yield problem(key, f"nothing: agent.name {config.agent.name} consumes its experience once")
    yield from _size_problems(problem, config, iteration, length)
    if config.learn.strategy == MULTI_WORKER:
        yield problem("learn.strategy", f"the others, with agent.name {config.agent.name}")
    yield from _replica_problems(problem, config, iteration, length)


def _size_problems(problem: _Problem, config: Config, iteration: Iteration, length: int) -> Iterator[_Found]:
    """Yields numbers that do not divide an iteration, or that an iteration does not divide."""
    size, batch = iteration.env_steps, config.learn.batch_size
    if size % length:
        yield problem("agent.env_steps_per_iteration", f"a multiple of fragment_length ({length})")
    elif config.collect.actors and config.collect.envs_per_actor:
        together = length * config.collect.actors * config.collect.envs_per_actor
        if size % together:  # Actors collect whole fragments; those beyond an iteration would be dropped.
            allowed = (
                f"a multiple of {together}, agent.fragment_length x collect.actors x collect.envs_per_actor"
            )
            others = ("collect.actors", "collect.envs_per_actor")
            yield problem("agent.env_steps_per_iteration", allowed, *others)
    if size % batch:
        yield problem("learn.batch_size", f"what divides agent.env_steps_per_iteration ({size})")
    elif iteration.whole_sequences and batch % length:
        yield problem("learn.batch_size", f"a multiple of fragment_length ({length}), with a memory")
    elif config.learn.train_steps % iteration.train_steps(batch):
        steps = iteration.train_steps(batch)
        allowed = f"a multiple of {steps}, the train steps of an iteration: epochs x env steps / batch_size"
        yield problem("learn.train_steps", allowed, "learn.batch_size")


def _replica_problems(
    problem: _Problem, config: Config, iteration: Iteration, length: int
) -> Iterator[_Found]:
    """Yields a strategy whose replicas cannot share the fragments equally."""
    count = replicas(config.learn.strategy) or 1
    of_batch, of_all = config.learn.batch_size // length, iteration.env_steps // length
    if iteration.whole_sequences and of_batch % count:
        allowed = f"so many replicas that they divide the {of_batch} fragments of a minibatch"
        yield problem("learn.strategy", allowed)
    elif of_all % count:
        yield problem("learn.strategy", f"so many replicas that they divide the {of_all} fragments")


def _table_problems(problem: _Problem, config: Config, experience: Experience) -> Iterator[_Found]:
    """Yields problems of experience that is drawn again and again."""
    replay, batch_size = config.replay, config.learn.batch_size
    per_item = _most_env_steps_per_item(config, experience)
    if replay.capacity > MAX_ITEMS * per_item:
        most = f"at most {MAX_ITEMS * per_item} with replay.layout {replay.layout}"
        yield problem("replay.capacity", f"{most}: a table has {MAX_ITEMS} items", "replay.layout")
    if replay.min_size > replay.capacity:
        allowed = f"at most replay.capacity ({replay.capacity}), or sampling never starts"
        yield problem("replay.min_size", allowed, "replay.capacity")
    if replay.updates_per_env_step is not None and replay.error_buffer is not None:
        least = min_error_buffer(per_item, replay.updates_per_env_step * batch_size * experience.stride)
        if replay.error_buffer < least:
            allowed = (
                f"at least {least:g} env steps with these updates_per_env_step and batch_size, or collecting "
                "and training deadlock"
            )
            yield problem("replay.error_buffer", allowed, "replay.updates_per_env_step", "learn.batch_size")


def _most_env_steps_per_item(config: Config, experience: Experience) -> int:
    """Returns an upper bound for any environment: large observations get fewer transitions into an item."""
    if experience.length is not None:
        return experience.stride
    if experience.priorities is not None:
        return 1
    most = max_transitions_per_item(config.replay.layout)
    return min(most, config.replay.transitions_per_item or most)
