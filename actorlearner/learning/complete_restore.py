"""Restores a checkpoint completely or not at all: TensorFlow itself skips variables that do not match."""

import functools
from collections.abc import Callable, Collection
from pathlib import Path

import tensorflow as tf

from actorlearner.errors import RunError, one_line
from actorlearner.records.plain_path import plain_path

_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
_SLOT = "/.OPTIMIZER_SLOT/"
_MAX_NAMES = 3


def read_completely(checkpoint: tf.train.Checkpoint, path: Path) -> Callable[[], None]:
    """Reads a checkpoint, and checks that it has all variables of `checkpoint` that exist by now.

    TensorFlow assigns the others when they are created: optimisers create theirs at their first use.

    Args:
      checkpoint: the object whose variables are assigned.
      path: the checkpoint to read, without file suffixes.

    Returns:
      A function to call once all variables exist. It raises a RunError if the checkpoint and `checkpoint`
      do not have the same variables.

    Raises:
      RunError: a variable is missing in the checkpoint or has another shape. The files stay as they are.
    """
    plain = plain_path(path)
    try:
        status = checkpoint.read(plain)
    except ValueError as error:  # Shapes differ.
        raise _refusal(path, one_line(error)) from error

    def check(assertion: Callable[[], object], *, all_exist: bool) -> None:
        try:
            assertion()
        except AssertionError as error:
            raise _refusal(path, _difference(checkpoint, plain, all_exist) or one_line(error)) from error

    check(status.assert_existing_objects_matched, all_exist=False)
    return functools.partial(check, status.assert_consumed, all_exist=True)


def _refusal(path: Path, why: str) -> RunError:
    return RunError(
        f"the checkpoint {path} was not restored: {why}; it is kept as it is. Allowed: the version of the "
        "agent and of its libraries that wrote it, or a new --run_dir"
    )


def _difference(checkpoint: tf.train.Checkpoint, path: str, all_exist: bool) -> str:
    """Names the variables that only one side has; empty if the sides differ only in optimisers' slots."""
    here, there = _variables(checkpoint), {name for name in _saved(path) if _SLOT not in name}
    parts = []
    if missing := here - there:
        parts.append(f"it does not hold {_list(missing)}")
    if all_exist and (unknown := there - here):
        parts.append(f"the agent does not have {_list(unknown)}")
    return ", and ".join(parts)


def _saved(path: str) -> set[str]:
    """Returns the names of all variables in a checkpoint."""
    return {name.removesuffix(_VALUE) for name, _ in tf.train.list_variables(path) if name.endswith(_VALUE)}


def _variables(checkpoint: tf.train.Checkpoint) -> set[str]:
    """Returns the names under which TensorFlow saves variables, without the slots of optimisers.

    The search is breadth-first, because TensorFlow names a variable by the shortest path to it.
    """
    view = tf.train.TrackableView(checkpoint)
    found, seen = [(checkpoint, "")], {id(checkpoint)}
    for part, name in found:
        for key, child in view.children(part).items():
            if id(child) not in seen:
                seen.add(id(child))
                found.append((child, f"{name}/{key}" if name else key))
    return {name for part, name in found if isinstance(part, tf.Variable)}


def _list(names: Collection[str]) -> str:
    shown = sorted(names)[:_MAX_NAMES]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
