"""`status`: reports how a run is doing.

Reads the state of a run, whether it is running or not, and changes nothing. From a run directory it reports
all that the run's roles have written there; from a replay server, which may be on another machine, what the
server knows.
"""

import argparse

from actorlearner.cli.arguments import add_replay_address, reachable_address
from actorlearner.cli.command import Commands, add_command
from actorlearner.errors import ConfigurationError
from actorlearner.records.usable_path import obstacle


def add_to(commands: Commands) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "status",
        _start,
        summary="report how a run is doing: its roles, rates, replay, returns and bottleneck",
        description=__doc__,
        example="runs/sac_pendulum-20261121-063535 --watch",
    )
    parser.add_argument("run_dir", metavar="RUN_DIR", nargs="?", help="the run directory to read")
    add_replay_address(parser, "query this replay server instead of a run directory")
    parser.add_argument("--watch", action="store_true", help="read again every two seconds, until Ctrl-C")
    parser.add_argument(
        "--json", action="store_true", help="print a JSON object instead, one on a line for each reading"
    )


def _start(arguments: argparse.Namespace, problems: list[str]) -> int:
    run_dir, address = arguments.run_dir, arguments.replay_address
    if run_dir is None and address is None and not problems:
        problems.append("RUN_DIR: it is missing; allowed: a run directory, or --replay_address instead")
    if run_dir is not None and address is not None:
        problems.append(f"--replay_address: {address!r} cannot be used; allowed: without RUN_DIR")
    if run_dir is not None and (reason := obstacle(run_dir)):
        problems.append(f"RUN_DIR: {run_dir!r} cannot be used ({reason}); allowed: a run directory")
    if problems:
        raise ConfigurationError(problems)
    from actorlearner.inspect.status.show_status import print_status

    return print_status(run_dir, reachable_address(arguments), watch=arguments.watch, as_json=arguments.json)
