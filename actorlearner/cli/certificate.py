"""`certificate`: makes the certificate of a run, for connections by mutual TLS.

Writes a new file that only this user can read. The roles that are given it by --tls reach each other, and
nobody else reaches the replay server. Copy it to the machines of the run alone: it is the run's secret.
"""

import argparse
from pathlib import Path

from actorlearner.cli.command import Commands, add_command
from actorlearner.errors import EXIT_FINISHED, ConfigurationError


def add_to(commands: Commands) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "certificate",
        _start,
        summary="make the certificate of a run, for mutual TLS",
        description=__doc__,
        example="run.pem",
    )
    parser.add_argument("file", metavar="FILE", help="the file to make")


def _start(arguments: argparse.Namespace, problems: list[str]) -> int:
    if problems:
        raise ConfigurationError(problems)
    from actorlearner.network.certificate import make_certificate, write_certificate

    try:
        write_certificate(Path(arguments.file), make_certificate())
    except OSError as error:
        problem = f"FILE: {arguments.file!r} cannot be used ({error.strerror})"
        raise ConfigurationError([f"{problem}; allowed: a new file"]) from error
    return EXIT_FINISHED
