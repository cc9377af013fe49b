"""The command that a container's or an orchestrator's probe calls."""

import dataclasses

from actorlearner.cli import flags
from actorlearner.cli.command import Command, Flag, Options
from actorlearner.cli.run_dir import RUN_DIR, given_run_dir
from actorlearner.config.addresses import read_address
from actorlearner.errors import ConfigurationError
from actorlearner.process.health import REPLAY_SERVER, ROLES


def _health(options: Options, problems: list[str]) -> int:
    run_dir = given_run_dir(options, problems)
    address: str | None = options.get("replay_address")
    if address is not None and options.get("role", REPLAY_SERVER) != REPLAY_SERVER:
        problems.append(f"--replay_address: {address!r} cannot be used; allowed: for the {REPLAY_SERVER}")
    if run_dir is None or problems:
        raise ConfigurationError(problems)
    from actorlearner.process.health import run_health

    return run_health((options["role"],) if "role" in options else ROLES, run_dir, address)


HEALTH = Command(
    "say whether a running role is healthy",
    "Looks at the signs of life that the roles of a run directory give: whether they get on with their "
    "work, or wait as they should. With --replay_address, the replay server has to answer as well. Exit "
    "code 1 if one hangs, is still starting, or does not run there.",
    "--role learner --run_dir runs/sac_pendulum-20261121-063535",
    _health,
    {
        "run_dir": dataclasses.replace(RUN_DIR, help="where the role writes", required=True),
        "role": Flag(
            "ROLE",
            f"{', '.join(ROLES[:-1])} or {ROLES[-1]}",
            flags.role,
            required=False,
            offered=lambda: ROLES,
        ),
        "replay_address": Flag(
            "HOST:PORT", "where the replay server of that directory listens", read_address, required=False
        ),
    },
)
