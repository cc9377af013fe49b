"""Checks of a configuration against Reverb's tables and rate limiter, and against the agent's experience."""

from collections.abc import Collection, Iterator

from actorlearner.agents.experience import Experience
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


def replay_problems(config: Config, sources: Sources, broken: Collection[str] = ()) -> list[str]:
    """Returns one line for each key that no table has room for, or with which the run cannot work.

    Args:
      config: the configuration.
      sources: where the given keys come from.
      broken: keys that were refused already; checks that depend on them are skipped.
    """
    experience = _experience(config, broken)
    found = list(_experience_problems(config, sources, experience))
    found += _table_problems(config, sources, experience) if experience.iteration is None else ()
    return [line for keys, line in found if not {*keys}.intersection(broken)]


def _experience(config: Config, broken: Collection[str]) -> Experience:
    if any(key.startswith("agent") for key in broken):
        return Experience()
    try:
        return find_builder(config.agent.name).experience(config.agent)
    except ConfigurationError:  # The name of the agent is refused elsewhere.
        return Experience()


def _experience_problems(
    config: Config, sources: Sources, experience: Experience
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields the keys that a problem depends on, and its line."""

    def refuse(key: str, allowed: str, *others: str) -> tuple[tuple[str, ...], str]:
        return (key, *others), cannot_work(config, key, sources, allowed)

    if config.replay.layout != "packed" and experience != Experience():
        yield refuse("replay.layout", f"packed, with what agent.name {config.agent.name} learns from")
    if experience.length is not None and config.agent.n_step != 1:
        yield refuse("agent.n_step", "1, for an agent that learns from sequences")
    if experience.length is not None and experience.stride > experience.length:
        yield refuse("agent.sequence_stride", f"at most agent.sequence_length ({experience.length})")
    iteration = experience.iteration
    if iteration is None or experience.length is None:
        return
    keys, values = config_keys(type(config.agent)), declared_values(config)
    for key in _OF_REPLAY:
        if values[key] != keys[key].default:
            yield refuse(key, f"nothing: agent.name {config.agent.name} consumes its experience once")
    size, batch = iteration.env_steps, config.learn.batch_size
    if size % experience.length:
        yield refuse("agent.env_steps_per_iteration", f"a multiple of fragment_length ({experience.length})")
    elif config.collect.actors and config.collect.envs_per_actor:
        together = experience.length * config.collect.actors * config.collect.envs_per_actor
        if size % together:  # Actors collect whole fragments; those beyond an iteration would be dropped.
            allowed = (
                f"a multiple of {together}, agent.fragment_length x collect.actors x collect.envs_per_actor"
            )
            others = ("collect.actors", "collect.envs_per_actor")
            yield refuse("agent.env_steps_per_iteration", allowed, *others)
    if size % batch:
        yield refuse("learn.batch_size", f"what divides agent.env_steps_per_iteration ({size})")
    elif iteration.whole_sequences and batch % experience.length:
        yield refuse(
            "learn.batch_size", f"a multiple of fragment_length ({experience.length}), with a memory"
        )
    elif config.learn.train_steps % iteration.train_steps(batch):
        steps = iteration.train_steps(batch)
        allowed = f"a multiple of {steps}, the train steps of an iteration: epochs x env steps / batch_size"
        yield refuse("learn.train_steps", allowed, "learn.batch_size")
    if config.learn.strategy == MULTI_WORKER:
        yield refuse("learn.strategy", f"the others, with agent.name {config.agent.name}")
    count = replicas(config.learn.strategy) or 1
    if iteration.whole_sequences and batch // experience.length % count:
        allowed = (
            f"so many replicas that they divide the {batch // experience.length} fragments of a minibatch"
        )
        yield refuse("learn.strategy", allowed)
    elif size // experience.length % count:
        allowed = f"so many replicas that they divide the {size // experience.length} fragments"
        yield refuse("learn.strategy", allowed)


def _table_problems(
    config: Config, sources: Sources, experience: Experience
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields problems of experience that is drawn again and again, with the keys that they depend on."""
    replay, batch_size = config.replay, config.learn.batch_size
    per_item = _most_env_steps_per_item(config, experience)

    def refuse(key: str, allowed: str, *others: str) -> tuple[tuple[str, ...], str]:
        return (key, *others), cannot_work(config, key, sources, allowed)

    if replay.capacity > MAX_ITEMS * per_item:
        most = f"at most {MAX_ITEMS * per_item} with replay.layout {replay.layout}"
        yield refuse("replay.capacity", f"{most}: a table has {MAX_ITEMS} items", "replay.layout")
    if replay.min_size > replay.capacity:
        allowed = f"at most replay.capacity ({replay.capacity}), or sampling never starts"
        yield refuse("replay.min_size", allowed, "replay.capacity")
    if replay.updates_per_env_step is not None and replay.error_buffer is not None:
        least = min_error_buffer(per_item, replay.updates_per_env_step * batch_size * experience.stride)
        if replay.error_buffer < least:
            allowed = (
                f"at least {least:g} env steps with these updates_per_env_step and batch_size, or collecting "
                "and training deadlock"
            )
            yield refuse("replay.error_buffer", allowed, "replay.updates_per_env_step", "learn.batch_size")


def _most_env_steps_per_item(config: Config, experience: Experience) -> int:
    """Returns an upper bound for any environment: large observations get fewer transitions into an item."""
    if experience.length is not None:
        return experience.stride
    if experience.priorities is not None:
        return 1
    most = max_transitions_per_item(config.replay.layout)
    return min(most, config.replay.transitions_per_item or most)
