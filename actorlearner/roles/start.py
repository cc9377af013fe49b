"""Starts a role by its name: the function that the command line and local mode share."""

import functools
import importlib
from collections.abc import Mapping
from typing import Any, NoReturn

from actorlearner.config.schema import Config
from actorlearner.learning.cluster import learner_cluster
from actorlearner.process.process import RoleFunction, Start, run_role
from actorlearner.process.role_names import COLLECT_ACTOR, LEARNER


def start_role(role: str, start: Start) -> NoReturn:
    """Runs one role until it ends, then ends this process with the role's exit code.

    Args:
      role: replay-server, collect-actor, eval-actor or learner.
      start: the configuration and options of the role.

    Raises:
      ConfigurationError: the run directory holds a run of another configuration, or another process runs
        there, or TF_CONFIG is wrong.
      RunError: the run directory cannot be used.
    """
    name = _process_name(role, start.config, start.options)
    run_role(name, functools.partial(import_role, role), start)


def import_role(role: str) -> RoleFunction:
    """Imports a role's module, and with it TensorFlow, which takes seconds; returns the role's `run`."""
    run: RoleFunction = importlib.import_module(f"actorlearner.roles.{role.replace('-', '_')}").run
    return run


def _process_name(role: str, config: Config, options: Mapping[str, Any]) -> str:
    """Returns the role's name, with its index where a run has several processes of the role."""
    if role == LEARNER and (cluster := learner_cluster(config)):
        return cluster.name
    return f"{role}-{options['actor_index']}" if role == COLLECT_ACTOR else role
