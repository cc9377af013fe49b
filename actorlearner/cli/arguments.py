"""Flags and arguments that several commands share, and the checks of their values."""

import argparse
import functools
import ipaddress
import re
from collections.abc import Sequence
from pathlib import Path

from actorlearner.acting.policy_source import POLICY_ARGUMENT, PolicySource, find_policy
from actorlearner.agents.configuration import load_config
from actorlearner.cli.command import parsed_by
from actorlearner.config.addresses import read_address, read_port
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError
from actorlearner.network.ports import LOOPBACK
from actorlearner.process.role_process import Verbosity
from actorlearner.process.tensorflow_setup import check_numpy
from actorlearner.records.run_directory import NEW_RUNS, RunDirectory
from actorlearner.records.usable_path import obstacle

_MAX_DIGITS = 9


def index(text: str) -> int:
    """Parses a number counted from 0; raises ValueError."""
    if not re.fullmatch(f"[0-9]{{1,{_MAX_DIGITS}}}", text):
        raise ValueError("an integer from 0")
    return int(text)


def count(text: str, at_most: int | None = None) -> int:
    """Parses a number of things, from 1 to `at_most`, or from 1 without a limit; raises ValueError."""
    number = int(text) if re.fullmatch(f"[0-9]{{1,{_MAX_DIGITS}}}", text) else 0
    if number < 1 or (at_most is not None and number > at_most):
        raise ValueError("an integer from 1" if at_most is None else f"an integer from 1 to {at_most}")
    return number


def add_count(
    parser: argparse.ArgumentParser, flag: str, text: str, default: int, at_most: int | None = None
) -> None:
    """Adds a flag for a number of things, see `count`; `text` is its help, to which the default is added."""
    text = f"{text}; default: {default}"
    parse = functools.partial(count, at_most=at_most)
    parser.add_argument(flag, metavar="N", type=parsed_by(flag, parse), default=default, help=text)


# A run directory that a command writes to.


def checked_run_dir(
    arguments: argparse.Namespace, problems: list[str], flag: str = "--run_dir"
) -> str | None:
    """Returns the directory of `flag`, if given; appends a problem if none can be made there."""
    run_dir: str | None = getattr(arguments, flag.removeprefix("--"))
    if reason := obstacle(NEW_RUNS if run_dir is None else run_dir):
        which = f"without it, {NEW_RUNS!r}" if run_dir is None else repr(run_dir)
        problems.append(
            f"{flag}: {which} cannot be used ({reason}); allowed: a directory, there or to be made"
        )
    return run_dir


# Run directories that a command reads.


def add_run_dirs(parser: argparse.ArgumentParser, text: str) -> None:
    """Adds the argument RUN_DIR, which may be repeated."""
    parser.add_argument("run_dirs", metavar="RUN_DIR", nargs="+", help=text)


def checked_run_dirs(paths: Sequence[str], problems: list[str]) -> list[tuple[RunDirectory, Config]]:
    """Returns the run directories with their configurations; appends the problems of the others."""
    runs: list[tuple[RunDirectory, Config]] = []
    seen = set()
    for path in paths:
        directory = RunDirectory(Path(path))
        if not directory.holds_a_run:
            reason = "there is no config.yaml in it" if directory.path.is_dir() else "it is not a directory"
            problems.append(f"RUN_DIR: {path!r} cannot be used ({reason}); allowed: the directory of a run")
        elif directory.path.resolve() in seen:
            problems.append(f"RUN_DIR: {path!r} is given twice; allowed: each only once")
        else:
            seen.add(directory.path.resolve())
            try:
                runs.append((directory, load_config(str(directory.config))))
            except ConfigurationError as error:
                problems.extend(error.problems)
    return runs


# The file that a command writes.


def checked_out(out: str | Path | None, problems: list[str], suffix: str = "") -> Path | None:
    """Returns --out as a path, if given; appends a problem if it cannot be written.

    Args:
      out: the flag's value.
      problems: found so far.
      suffix: of the file's name; empty where the flag's parser has checked it.
    """
    if out is None:
        return None
    path = Path(out)
    if suffix and path.suffix != suffix:
        reason = f"its name does not end with {suffix}"
    elif path.is_dir():
        reason = "it is a directory"
    else:
        reason = obstacle(str(path.parent))
    if reason:
        allowed = f"a file NAME{suffix}" if suffix else "a file to be made or replaced"
        problems.append(f"--out: {str(out)!r} cannot be used ({reason}); allowed: {allowed}")
    return path


# A saved policy that a command plays.


def add_policy(parser: argparse.ArgumentParser, *, episodes: int) -> None:
    """Adds the argument for a saved policy, --episodes (with this default) and --seed."""
    parser.add_argument(
        "policy",
        metavar=POLICY_ARGUMENT,
        help="a run directory (its policies/best, else its policies/greedy_policy), the directory of one "
        "policy, also a copy elsewhere, or a checkpoint such as RUN_DIR/checkpoints/learner/ckpt-10000",
    )
    add_count(parser, "--episodes", "how many are played", episodes)
    parser.add_argument(
        "--seed",
        metavar="S",
        type=parsed_by("--seed", index),
        default=0,
        help="seeds the environments; default: 0",
    )


def checked_policy(arguments: argparse.Namespace, problems: list[str]) -> PolicySource:
    """Finds the policy; raises a ConfigurationError with all problems so far if there are any."""
    check_numpy()
    try:
        source = find_policy(arguments.policy)
    except ConfigurationError as error:
        raise ConfigurationError([*problems, *error.problems]) from error
    if problems:
        raise ConfigurationError(problems)
    return source


# Where a replay server listens.


def add_replay_address(parser: argparse.ArgumentParser, text: str) -> None:
    """Adds --replay_address for one server, and --tls."""
    parser.add_argument(
        "--replay_address", metavar="HOST:PORT", type=parsed_by("--replay_address", read_address), help=text
    )
    add_tls(parser)


def reachable_address(arguments: argparse.Namespace) -> str | None:
    """Returns the address that a Reverb client connects to; with --tls, the local end of a tunnel.

    Raises:
      ConfigurationError: --tls is not a run's certificate.
    """
    address: str | None = arguments.replay_address
    problems: list[str] = []
    certificate = checked_certificate(arguments, problems)
    if problems:
        raise ConfigurationError(problems)
    if address is None or certificate is None:
        return address
    from actorlearner.network.tls import open_tunnels

    return open_tunnels([address], certificate)[0]


def add_tls(parser: argparse.ArgumentParser) -> None:
    """Adds --tls."""
    parser.add_argument(
        "--tls",
        metavar="FILE",
        help="connect by mutual TLS with this certificate, which `actorlearner certificate` made for the run",
    )


def checked_certificate(arguments: argparse.Namespace, problems: list[str]) -> Path | None:
    """Returns --tls, if given; appends a problem if it is not a run's certificate."""
    if arguments.tls is None:
        return None
    from actorlearner.network.certificate import check_certificate

    path = Path(arguments.tls)
    try:
        check_certificate(path)
    except ConfigurationError as error:
        problems.extend(error.problems)
    return path


# What the commands that train print, and where they serve their metrics.


def add_output_flags(parser: argparse.ArgumentParser) -> None:
    """Adds --quiet, --verbose, --metrics_port and --metrics_host."""
    text = "print only what goes wrong, and where a new run directory is"
    parser.add_argument("--quiet", action="store_true", help=text)
    parser.add_argument(
        "--verbose", action="store_true", help="print everything that goes to the logs as well"
    )
    parser.add_argument(
        "--metrics_port",
        metavar="PORT",
        type=parsed_by("--metrics_port", read_port),
        help="serve the metrics for Prometheus on this port; off by default",
    )
    parser.add_argument(
        "--metrics_host",
        metavar="ADDRESS",
        type=parsed_by("--metrics_host", _ip_address),
        help=f"the address that --metrics_port listens on; default: {LOOPBACK}, which only this machine "
        "reaches",
    )


def verbosity(arguments: argparse.Namespace) -> Verbosity:
    """Returns what --quiet and --verbose request; raises a ConfigurationError if both are given."""
    if arguments.quiet and arguments.verbose:
        raise ConfigurationError(["--quiet: cannot be used with --verbose; allowed: one of them"])
    if arguments.quiet:
        return Verbosity.QUIET
    return Verbosity.VERBOSE if arguments.verbose else Verbosity.NORMAL


def metrics_address(arguments: argparse.Namespace) -> tuple[str, int] | None:
    """Returns the address and port for Prometheus; raises a ConfigurationError for a host without a port."""
    host, port = arguments.metrics_host, arguments.metrics_port
    if port is None and host is not None:
        raise ConfigurationError([f"--metrics_host: {host!r} cannot be used; allowed: with --metrics_port"])
    return None if port is None else (host or LOOPBACK, port)


def _ip_address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise ValueError(f"an IP address of this machine, as in {LOOPBACK} or 0.0.0.0") from None
