"""Checks of a configuration against Reverb's tables and rate limiter, and against the agent's experience."""

import math
from collections.abc import Collection, Iterator
from typing import NamedTuple

from actorlearner.agents.experience import Experience, Iteration
from actorlearner.agents.registry import find_builder
from actorlearner.config.checks import MULTI_WORKER, cannot_work, mirrored_replicas
from actorlearner.config.keys import config_keys
from actorlearner.config.problems import show
from actorlearner.config.resolved import declared_values
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError
from actorlearner.replay.item_size import MAX_ITEMS, max_transitions_per_item
from actorlearner.replay.rate_limit import min_error_buffer

_UNUSED_ON_POLICY = (
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
"""Keys that have no effect on experience that is consumed once.

Only their defaults are accepted, because a saved configuration contains all keys.
"""


class _Problem(NamedTuple):
    """A key with a value that cannot work, its allowed values, and the other keys that these depend on."""

    key: str
    allowed: str
    others: tuple[str, ...] = ()


def replay_problems(config: Config, broken: Collection[str] = ()) -> list[str]:
    """Returns one line for each key whose value does not suit Reverb's tables or the agent's experience.

    Args:
      config: the configuration.
      broken: keys that were refused already; checks that depend on them are skipped.
    """
    experience = _experience(config, broken)
    found = list(_sequence_problems(config, experience))
    if experience.iteration is None:
        found += _table_problems(config, experience)
    elif experience.length is not None:
        found += _iteration_problems(config, experience.iteration, experience.length)
    return [_line(config, each) for each in found if not {each.key, *each.others}.intersection(broken)]


def _line(config: Config, found: _Problem) -> str:
    if found.key in config_keys(type(config.agent)):
        return cannot_work(config, found.key, found.allowed)
    # The user's own algorithm may have other keys for its experience, or none.
    _, _, name = found.key.rpartition(".")
    allowed = f"an algorithm whose experience has as {name} {found.allowed}"
    return cannot_work(config, "agent.name", allowed)


def _experience(config: Config, broken: Collection[str]) -> Experience:
    if any(key.startswith("agent") for key in broken):
        return Experience()
    try:
        return find_builder(config.agent.name).experience(config.agent)
    except ConfigurationError:  # The name of the agent is refused elsewhere.
        return Experience()


def _sequence_problems(config: Config, experience: Experience) -> Iterator[_Problem]:
    """Yields problems of the layout with the agent's experience, and of sequences."""
    if config.replay.layout != "packed" and experience != Experience():
        yield _Problem("replay.layout", f"packed, for the experience of agent.name {config.agent.name}")
    if experience.length is not None and config.agent.n_step != 1:
        yield _Problem("agent.n_step", "1, for an agent that learns from sequences")
    if experience.length is not None and experience.stride > experience.length:
        yield _Problem("agent.sequence_stride", f"at most agent.sequence_length ({experience.length})")


def _iteration_problems(config: Config, iteration: Iteration, length: int) -> Iterator[_Problem]:
    """Yields problems of experience that is consumed once, in iterations of fragments of this length."""
    keys, values = config_keys(type(config.agent)), declared_values(config)
    for key in _UNUSED_ON_POLICY:
        if values[key] != keys[key].default:
            default = f"its default {show(keys[key].default)}"
            yield _Problem(key, f"{default}: agent.name {config.agent.name} consumes its experience once")
    yield from _size_problems(config, iteration, length)
    if config.learn.strategy == MULTI_WORKER:
        yield _Problem("learn.strategy", f"the others, with agent.name {config.agent.name}")
    yield from _replica_problems(config, iteration, length)


def _size_problems(config: Config, iteration: Iteration, length: int) -> Iterator[_Problem]:
    """Yields problems of sizes: fragments, minibatches and train steps have to fit whole iterations."""
    size, batch = iteration.env_steps, config.learn.batch_size
    if size % length:
        yield _Problem("agent.env_steps_per_iteration", f"a multiple of fragment_length ({length})")
    elif config.collect.actors and config.collect.envs_per_actor:
        together = length * config.collect.actors * config.collect.envs_per_actor
        if size % together:  # Actors collect whole fragments; those beyond an iteration would be dropped.
            allowed = (
                f"a multiple of {together}, agent.fragment_length x collect.actors x collect.envs_per_actor"
            )
            others = ("collect.actors", "collect.envs_per_actor")
            yield _Problem("agent.env_steps_per_iteration", allowed, others)
    if size % batch:
        yield _Problem("learn.batch_size", f"a divisor of agent.env_steps_per_iteration ({size})")
    elif iteration.whole_sequences and batch % length:
        yield _Problem("learn.batch_size", f"a multiple of fragment_length ({length}), with an LSTM")
    elif config.learn.train_steps % iteration.train_steps(batch):
        steps = iteration.train_steps(batch)
        allowed = f"a multiple of {steps}, the train steps of an iteration: epochs x env steps / batch_size"
        yield _Problem("learn.train_steps", allowed, ("learn.batch_size",))


def _replica_problems(config: Config, iteration: Iteration, length: int) -> Iterator[_Problem]:
    """Yields a problem if the replicas cannot share the fragments equally."""
    count = mirrored_replicas(config.learn.strategy) or 1
    per_batch, per_iteration = config.learn.batch_size // length, iteration.env_steps // length
    if iteration.whole_sequences and per_batch % count:
        allowed = f"a number of replicas that divides the {per_batch} fragments of a minibatch"
        yield _Problem("learn.strategy", allowed)
    elif per_iteration % count:
        allowed = f"a number of replicas that divides the {per_iteration} fragments of an iteration"
        yield _Problem("learn.strategy", allowed)


def _table_problems(config: Config, experience: Experience) -> Iterator[_Problem]:
    """Yields problems of experience that is drawn again and again."""
    replay, batch_size = config.replay, config.learn.batch_size
    per_item = _most_env_steps_per_item(config, experience)
    if replay.capacity > MAX_ITEMS * per_item:
        most = f"at most {MAX_ITEMS * per_item} with replay.layout {replay.layout}"
        yield _Problem("replay.capacity", f"{most}: a table has {MAX_ITEMS} items", ("replay.layout",))
    if replay.min_size > replay.capacity:
        allowed = f"at most replay.capacity ({replay.capacity}), or sampling never starts"
        yield _Problem("replay.min_size", allowed, ("replay.capacity",))
    if replay.updates_per_env_step is not None and replay.error_buffer is not None:
        least = min_error_buffer(per_item, replay.updates_per_env_step * batch_size * experience.stride)
        if replay.error_buffer < least:
            allowed = (
                f"at least {math.ceil(least)} env steps with these updates_per_env_step and batch_size, or "
                "collecting and training deadlock"
            )
            yield _Problem(
                "replay.error_buffer", allowed, ("replay.updates_per_env_step", "learn.batch_size")
            )


def _most_env_steps_per_item(config: Config, experience: Experience) -> int:
    """Returns an upper bound for any environment: large observations get fewer transitions into an item."""
    if experience.length is not None:
        return experience.stride
    if experience.priorities is not None:
        return 1
    most = max_transitions_per_item(config.replay.layout)
    return min(most, config.replay.transitions_per_item or most)
