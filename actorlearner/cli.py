"""The command line: turns flags into a configuration and options, and starts a role with them.

Only what a mistake needs is imported up here; TensorFlow waits until nothing is left to refuse.
"""

import argparse
import dataclasses
import os
import pathlib
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

import actorlearner
from actorlearner import flags
from actorlearner.chaos.schedule import LEAST_DURATION_S
from actorlearner.cluster import learner_cluster
from actorlearner.config.checks import MULTI_WORKER
from actorlearner.config.load import load_with_sources
from actorlearner.config.problems import Sources, with_source
from actorlearner.config.schema import Config
from actorlearner.config.shipped import shipped_configs
from actorlearner.environments.names import check_environment
from actorlearner.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, ConfigurationError, RunError
from actorlearner.health.check import LEARNER, REPLAY_SERVER, ROLES
from actorlearner.local.networks import HOST, NETWORKS, PRIVATE
from actorlearner.replay.least_memory import least_memory_problems
from actorlearner.run_directory import NEW_RUNS, obstacle

PROGRAM = "actorlearner"

Options = dict[str, int | str | tuple[str, ...]]
"""What a role is told beside its configuration, by the name of the flag."""


@dataclasses.dataclass(frozen=True)
class _Flag:
    """A flag that only some commands have.

    Attributes:
      read: turns the text into the option, or raises a ValueError that says what is allowed.
      default: the text where the flag is not given; None where it has to be.
    """

    metavar: str
    help: str
    read: Callable[[str], int | str | tuple[str, ...]]
    default: str | None = None


@dataclasses.dataclass(frozen=True)
class _Command:
    """One command: what `--help` says of it, and the flags of its own.

    Attributes:
      optional: those of its flags that may be left out, though they have no default.
      own_flags: those of its flags that are not what they are elsewhere.
      config: the configuration without `--config`; empty where that is required.
      trains: whether it takes a configuration, and a run directory that need not be there.
    """

    summary: str
    description: str
    example: str
    flags: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    own_flags: Mapping[str, _Flag] = dataclasses.field(default_factory=dict)
    config: str = ""
    trains: bool = True

    def flag(self, name: str) -> _Flag:
        """What the command reads the flag of this name with."""
        return self.own_flags.get(name) or _FLAGS[name]


_FLAGS = {
    "port": _Flag("PORT", f"the port to serve on, 1 to {flags.HIGHEST_PORT}", flags.port),
    "replay_address": _Flag(
        "HOST:PORT[,...]",
        "where the replay server listens; of several, the first has the policy variables, each collect "
        "actor writes to one, and the learner samples from all",
        flags.addresses,
    ),
    "actor_index": _Flag("I", "which of the collect actors this is, counted from 0", flags.index),
    "network": _Flag(
        "|".join(NETWORKS),
        f"{PRIVATE}, the default, keeps everything outside this run away from the replay server, where the "
        f"system allows that; {HOST} is for environments that need the network",
        flags.network,
        default=PRIVATE,
    ),
    "duration": _Flag(
        "S", f"seconds during which roles are harmed, at least {LEAST_DURATION_S}", flags.seconds
    ),
    "seed": _Flag("N", "decides which role is harmed when", flags.index),
    "role": _Flag("ROLE", f"{', '.join(ROLES[:-1])} or {ROLES[-1]}", flags.role),
}

_COMMANDS = {
    "local": _Command(
        "train on this machine: every role as a process of its own",
        "Starts a replay server, the collect actors, an eval actor and a learner on this machine, and ends "
        "when the learner has finished and its last policy is evaluated.",
        "--config sac_pendulum --set learn.train_steps=20000 collect.actors=2",
        ("network",),
    ),
    "replay-server": _Command(
        "hold the experience, and pass the policy variables on",
        "Serves the experience table and the variable container of one run until it is told to stop.",
        "--config sac_pendulum --port 8008",
        ("port",),
    ),
    "collect-actor": _Command(
        "act in environments and write transitions into replay",
        "Steps environments with the newest collect policy and writes what happens into replay. Start as "
        "many as you like, each with an index of its own.",
        "--config sac_pendulum --replay_address replay.host:8008 --actor_index 0",
        ("replay_address", "actor_index"),
    ),
    "eval-actor": _Command(
        "measure the greedy policy now and then",
        "Plays whole episodes with the greedy policy of train step 0, of every evaluate.interval train "
        "steps and of the last one.",
        "--config sac_pendulum --replay_address replay.host:8008",
        ("replay_address",),
    ),
    "learner": _Command(
        "train the agent, and publish its policy variables",
        "Trains on batches from replay, publishes the policy variables, and writes checkpoints and policies.",
        "--config sac_pendulum --replay_address replay.host:8008",
        ("replay_address",),
    ),
    "doctor": _Command(
        "check whether this machine can train",
        "Checks the platform, the installed versions, GPUs, network, environment, memory, disk and a round "
        "trip through replay, one line each: ok, warn, or FAIL with what to do. Exit code 1 if any fails.",
        "--config sac_minitaur --run_dir /data/runs/minitaur",
        config="sac_pendulum",
    ),
    "chaos": _Command(
        "kill, stop and cut off the roles of a local run, and see what is lost",
        "Runs local mode with numbered transitions while its roles are killed, stopped and cut off from the "
        "replay server. Says what each role's downtime was and what became of every transition; fails if "
        "one was lost or duplicated without a reason.",
        "--config sac_pendulum --duration 600 --seed 1",
        ("duration", "seed"),
    ),
    "health": _Command(
        "say whether a running role is healthy",
        "Looks at the signs of life that the roles of a run directory give: whether they get on with their "
        "work, or wait as they should. With --replay_address, the replay server has to answer as well. Exit "
        "code 1 if one hangs, is still starting, or does not run there.",
        "--role learner --run_dir runs/sac_pendulum-20261121-063535",
        ("role", "replay_address"),
        optional=("role", "replay_address"),
        own_flags={
            "replay_address": _Flag(
                "HOST:PORT", "where the replay server of that directory listens", flags.address
            )
        },
        trains=False,
    ),
}

_HOLDING_REPLAY = ("local", "replay-server", "chaos")
"""The commands that need memory for all of it, on this machine."""

_STARTING_ONE_LEARNER = ("local", "chaos")

_EXIT_CODES = """\
exit codes:
  0           finished
  1           the run failed; one line says why
  2           bad usage or configuration; one line per problem, before anything starts
  130, 143    after SIGINT, SIGTERM, once everything has been saved and closed"""

_WIDTH = 80
_LONGEST_LINE = 2_000


class _Parser(argparse.ArgumentParser):
    """Reports a mistake in one line instead of two paragraphs."""

    def error(self, message: str) -> NoReturn:
        raise ConfigurationError([f"{message}; see '{self.prog} --help'"])


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
      argv: the arguments after the program's name; by default those of this process.

    Returns:
      The exit code. Every problem is one line on standard error.
    """
    try:
        arguments = _parser().parse_args(argv)
        return _run(arguments)
    except ConfigurationError as error:
        for line in error.problems:
            _complain(line)
        return EXIT_USAGE
    except RunError as error:
        _complain(str(error))
        print(*error.details, sep="\n", end="\n" if error.details else "", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:  # Before a role has taken over the signals.
        return EXIT_INTERRUPTED


def _complain(message: str) -> None:
    line = " ".join(message.splitlines())
    # What a file or a flag says must not reach the terminal as a command.
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
    if len(line) > _LONGEST_LINE:
        line = f"{line[: _LONGEST_LINE // 2]} ... {line[-_LONGEST_LINE // 2 :]}"
    print(f"{PROGRAM}: error: {line}", file=sys.stderr)


def _run(arguments: argparse.Namespace) -> int:
    try:
        folder = os.getcwd()
    except OSError as error:
        raise ConfigurationError([f"the working directory cannot be used: {error.strerror}"]) from None
    if folder not in sys.path:  # A script has its own folder there; last, so that nothing is shadowed.
        sys.path.append(folder)
    problems: list[str] = []
    options = _read_options(arguments, problems)
    if arguments.command == "health":
        return _health(options, arguments.run_dir, problems)
    overrides: list[str] = arguments.overrides
    loaded = _load(arguments.config, overrides, problems)
    if loaded is None or problems:
        raise ConfigurationError(problems)
    config, sources = loaded
    role: str = arguments.command
    if role in _HOLDING_REPLAY and (too_much := least_memory_problems(config, sources)):
        raise ConfigurationError(too_much)
    try:
        return _start(role, config, sources, options, arguments)
    except ConfigurationError as error:
        raise ConfigurationError([with_source(line, sources) for line in error.problems]) from error


def _check_group(role: str, config: Config) -> None:
    """Refuses a group of learners where there is one learner, and a TF_CONFIG that describes no group."""
    if role == LEARNER:
        learner_cluster(config)
    elif role in _STARTING_ONE_LEARNER and config.learn.strategy == MULTI_WORKER:
        problem = (
            f"learn.strategy: {MULTI_WORKER} cannot work with '{PROGRAM} {role}', which starts one learner"
        )
        raise ConfigurationError([f"{problem}; allowed: default, mirrored, mirrored:N or tpu"])


def _start(
    role: str, config: Config, sources: Sources, options: Options, arguments: argparse.Namespace
) -> int:
    _check_group(role, config)
    run_dir: str | None = arguments.run_dir
    experiment = pathlib.Path(arguments.config).stem
    if role == "local":
        from actorlearner.local.run import run_local

        return run_local(config, run_dir, experiment, str(options["network"]))
    if role == "doctor":
        from actorlearner.doctor.run import run_doctor

        return run_doctor(config, run_dir)
    if role == "chaos":
        from actorlearner.chaos.run import run_chaos

        duration, seed = int(str(options["duration"])), int(str(options["seed"]))
        return run_chaos(config, run_dir, experiment, duration=duration, seed=seed)
    from actorlearner.process import run_role

    return run_role(role, config, sources, run_dir, options, experiment)


def _health(options: Options, run_dir: str, problems: list[str]) -> int:
    address = options.get("replay_address")
    if address is not None and options.get("role", REPLAY_SERVER) != REPLAY_SERVER:
        problems.append(f"--replay_address: {address!r} cannot be used; allowed: for the {REPLAY_SERVER}")
    if problems:
        raise ConfigurationError(problems)
    from actorlearner.health.run import run_health

    roles = (str(options["role"]),) if "role" in options else ROLES
    return run_health(roles, run_dir, None if address is None else str(address))


def _load(path: str, overrides: Sequence[str], problems: list[str]) -> tuple[Config, Sources] | None:
    try:
        return load_with_sources(path, overrides, check_environment)
    except ConfigurationError as error:
        problems.extend(error.problems)
        return None


def _read_options(arguments: argparse.Namespace, problems: list[str]) -> Options:
    """Reads the flags of one role; here rather than in argparse, which stops at the first mistake."""
    options: Options = {}
    command = _COMMANDS[arguments.command]
    for name in command.flags:
        text: str | None = getattr(arguments, name)
        if text is None:
            continue
        try:
            options[name] = command.flag(name).read(text)
        except ValueError as error:
            problems.append(f"--{name}: {text!r} cannot be used; allowed: {error}")
    run_dir: str | None = arguments.run_dir
    in_the_way = obstacle(NEW_RUNS if run_dir is None else run_dir)
    if in_the_way:
        which = f"without it, {NEW_RUNS!r}" if run_dir is None else repr(run_dir)
        problems.append(
            f"--run_dir: {which} cannot be used ({in_the_way}); allowed: a directory, there or to be made"
        )
    return options


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=PROGRAM,
        description="Trains reinforcement learning agents with actors and a learner that talk over Reverb.",
        epilog=_examples(*_COMMANDS) + "\n\n" + _EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {actorlearner.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for name, command in _COMMANDS.items():
        command_parser = commands.add_parser(
            name,
            help=command.summary,
            description=textwrap.fill(command.description, _WIDTH),
            epilog=_examples(name),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        _add_flags(command_parser, command)
    return parser


def _add_flags(parser: argparse.ArgumentParser, command: _Command) -> None:
    if command.trains:
        _add_configuration(parser, command)
    parser.add_argument(
        "--run_dir",
        metavar="DIR",
        required=not command.trains,
        help="where everything is written; without it a new directory under runs/"
        if command.trains
        else "where the role writes",
    )
    for name in command.flags:
        flag = command.flag(name)
        parser.add_argument(
            f"--{name}",
            metavar=flag.metavar,
            required=flag.default is None and name not in command.optional,
            default=flag.default,
            help=flag.help,
        )


def _add_configuration(parser: argparse.ArgumentParser, command: _Command) -> None:
    shipped = ", ".join(shipped_configs())
    parser.add_argument(
        "--config",
        metavar="FILE",
        required=not command.config,
        default=command.config or None,
        help="a YAML file"
        + (f", or a shipped one: {shipped}" if shipped else "")
        + (f"; default: {command.config}" if command.config else ""),
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        dest="overrides",
        nargs="+",
        action="extend",
        default=[],
        help="override keys of the configuration, as in learn.batch_size=128; may be repeated",
    )


def _examples(*names: str) -> str:
    lines = [f"  {PROGRAM} {name} {_COMMANDS[name].example}" for name in names]
    return "\n".join(["examples:" if len(names) > 1 else "example:", *lines])
