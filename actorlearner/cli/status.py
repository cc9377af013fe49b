"""The command that looks at a run."""

from actorlearner.cli.command import Command, Flag, Options
from actorlearner.config.addresses import read_address
from actorlearner.errors import ConfigurationError
from actorlearner.records.run_directory import obstacle


def _status(options: Options, problems: list[str]) -> int:
    run_dir, address = options.get("run_dir"), options.get("replay_address")
    if run_dir is None and address is None and not problems:
        problems.append("RUN_DIR: it is missing; allowed: a run directory, or --replay_address instead")
    if run_dir is not None and address is not None:
        problems.append(f"--replay_address: {address!r} cannot be used; allowed: without RUN_DIR")
    if run_dir is not None and (in_the_way := obstacle(run_dir)):
        problems.append(f"RUN_DIR: {run_dir!r} cannot be used ({in_the_way}); allowed: a run directory")
    if problems:
        raise ConfigurationError(problems)
    from actorlearner.inspect.status.show_status import run_status

    return run_status(run_dir, address, watch=options.get("watch", False), as_json=options.get("json", False))


STATUS = Command(
    "say how a run is: its roles, rates, replay and returns, and what holds it back",
    "Takes one look at a run, be it running or not, and changes nothing. Of a run directory it tells all "
    "that its roles have written there; of a replay server, which may be on another machine, what the "
    "server knows.",
    "runs/sac_pendulum-20261121-063535 --watch",
    _status,
    {
        "replay_address": Flag(
            "HOST:PORT", "ask this replay server, instead of a run directory", read_address, required=False
        ),
        "watch": Flag("", "look again every two seconds, until Ctrl-C", switch=True),
        "json": Flag("", "print a JSON object instead, one on a line for each look", switch=True),
    },
    {"run_dir": Flag("RUN_DIR", "the run directory to look at", required=False)},
)
