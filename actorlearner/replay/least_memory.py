"""A lower bound of replay's memory for any environment, known before anything is loaded."""

from actorlearner.config.problems import Sources, problem
from actorlearner.config.schema import Config
from actorlearner.process.memory import available_bytes
from actorlearner.replay.item_memory import Column, fitting, item_bytes, size
from actorlearner.replay.item_size import MAX_ROWS
from actorlearner.replay.rate_limit import items

# Bytes of the arrays whose size does not depend on the environment; observations and actions may be empty.
_SCALAR = 4
_LEAST_ROW = 2 * _SCALAR + 8
"""Bytes of reward, discount, and the policy's train step."""


def least_bytes(config: Config) -> int:
    """Returns the bytes of a full replay whose observations and actions take none."""
    bytes_per_item, transitions_per_item = _least_item(config)
    return items(config.replay.capacity, transitions_per_item) * bytes_per_item


def least_memory_problems(config: Config, sources: Sources) -> list[str]:
    """Refuses a capacity that does not fit into the available memory with any environment.

    The replay server, which knows the environment, checks exactly; but that takes seconds.

    Args:
      config: the experiment.
      sources: where the values of all keys come from.

    Returns:
      One line, or none.
    """
    needed, available = least_bytes(config), available_bytes()
    if needed <= available:
        return []
    need = f"may need {size(needed)} of memory, however small they are, and {size(available)} is available"
    wrong = f"{config.replay.capacity} transitions {need}"
    most = fitting(available, *_least_item(config))
    allowed = f"at most {most} on this machine, and fewer with large observations"
    return [problem("replay.capacity", wrong, sources["replay.capacity"], allowed)]


def _least_item(config: Config) -> tuple[int, int]:
    """Returns the bytes of the smallest possible item, and its number of transitions.

    In the packed layout, larger rows only increase each transition's share of an item.
    """
    if config.replay.layout == "packed":
        return item_bytes([Column(1, MAX_ROWS * _LEAST_ROW)]), MAX_ROWS
    steps = config.agent.n_step + 1
    observation_and_action = [Column(steps, 0)] * 2
    others = [Column(steps, _SCALAR)] * 4  # The types of both time steps, reward and discount.
    return item_bytes(observation_and_action + others), 1
