"""Starts a role by its name: the function that the command line and local mode share."""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from actorlearner.config.schema import Config
from actorlearner.learning.cluster import learner_cluster
from actorlearner.process.process import Run, Start, run_role
from actorlearner.process.role_names import COLLECT_ACTOR, EVAL_ACTOR, LEARNER, REPLAY_SERVER


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
    run_role(_process_name(role, start.config, start.options), IMPORTS[role], start)


def _process_name(role: str, config: Config, options: Mapping[str, Any]) -> str:
    """Returns the role's name, with its index where a run has several processes of the role."""
    if role == LEARNER and (cluster := learner_cluster(config)):
        return cluster.name
    return f"{role}-{options['actor_index']}" if role == COLLECT_ACTOR else role


# Functions, because importing a role imports TensorFlow, which takes seconds.


def _replay_server() -> Run:
    from actorlearner.roles.replay_server import run

    return run


def _collect_actor() -> Run:
    from actorlearner.roles.collect_actor import run

    return run


def _eval_actor() -> Run:
    from actorlearner.roles.eval_actor import run

    return run


def _learner() -> Run:
    from actorlearner.roles.learner import run

    return run


IMPORTS: Mapping[str, Callable[[], Run]] = {
    REPLAY_SERVER: _replay_server,
    COLLECT_ACTOR: _collect_actor,
    EVAL_ACTOR: _eval_actor,
    LEARNER: _learner,
}
"""For each role, the function that imports it and returns its `run`."""
