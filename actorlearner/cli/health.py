"""`health`: the probe that a container engine or an orchestrator calls.

Reads the heartbeats that the roles of a run directory write: whether they get on with their work, or wait as
they should. With --replay_address, the replay server has to answer as well. Exit code 1 if a role hangs, is
still starting, or does not run there.
"""

import argparse

from actorlearner.cli.arguments import add_replay_address, checked_run_dir, reachable_address
from actorlearner.cli.command import Commands, add_command, listed, offer, one_of
from actorlearner.errors import ConfigurationError
from actorlearner.process.role_names import REPLAY_SERVER, ROLES


def add_to(commands: Commands) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "health",
        _start,
        summary="check whether a running role is healthy",
        description=__doc__,
        example="--role learner --run_dir runs/sac_pendulum-20261121-063535",
    )
    parser.add_argument("--run_dir", metavar="DIR", required=True, help="where the role writes")
    role = parser.add_argument("--role", metavar="ROLE", type=one_of("--role", ROLES), help=listed(ROLES))
    offer(role, lambda: ROLES)
    add_replay_address(parser, "where the replay server of that directory listens")


def _start(arguments: argparse.Namespace, problems: list[str]) -> int:
    run_dir = checked_run_dir(arguments, problems)
    role, address = arguments.role, arguments.replay_address
    if address is not None and role not in (None, REPLAY_SERVER):
        problems.append(f"--replay_address: {address!r} cannot be used; allowed: for the {REPLAY_SERVER}")
    if run_dir is None or problems:
        raise ConfigurationError(problems)
    from actorlearner.process.health import run_health

    return run_health(ROLES if role is None else (role,), run_dir, reachable_address(arguments))
