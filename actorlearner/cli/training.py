"""The commands that train: local mode, and each role by itself."""

from collections.abc import Mapping, Sequence
from typing import Any

from actorlearner.cli import flags
from actorlearner.cli.command import Command, Flag, Options
from actorlearner.cli.configured import (
    Check,
    Start,
    configured,
    holds_replay,
    starts_one_learner,
    trains_in_its_group,
)
from actorlearner.cli.metrics_port import METRICS_FLAGS, take_metrics_address
from actorlearner.cli.verbosity import VERBOSITY_FLAGS, take_verbosity
from actorlearner.config.addresses import HIGHEST_PORT, read_addresses, read_port
from actorlearner.config.checks import MULTI_WORKER
from actorlearner.config.problems import Sources
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError
from actorlearner.local.networks import HOST, NETWORKS, PRIVATE
from actorlearner.process.health import LEARNER as LEARNER_ROLE

_PORT = Flag("PORT", f"the port to serve on, 1 to {HIGHEST_PORT}", read_port)

_REPLAY_ADDRESS = Flag(
    "HOST:PORT[,...]",
    "where the replay server listens; of several, the first has the policy variables, each collect "
    "actor writes to one, and the learner samples from all",
    read_addresses,
)

_ACTOR_INDEX = Flag("I", "which of the collect actors this is, counted from 0", flags.index)


def _network(text: str) -> str:
    """Reads which network the roles of a local run are to be in.

    Raises:
      ValueError: it is none of NETWORKS; the message says what is allowed.
    """
    if text not in NETWORKS:
        raise ValueError(" or ".join(NETWORKS))
    return text


_NETWORK = Flag(
    "|".join(NETWORKS),
    f"{PRIVATE}, the default, keeps everything outside this run away from the replay server, where the "
    f"system allows that; {HOST} is for environments that need the network",
    _network,
    default=PRIVATE,
    offered=lambda: NETWORKS,
)

_EVERYWHERE = {**VERBOSITY_FLAGS, **METRICS_FLAGS}


def _local(config: Config, sources: Sources, run_dir: str | None, experiment: str, options: Options) -> int:
    from actorlearner.local.train import run_local

    return run_local(config, run_dir, experiment, options["network"], **_told(options))


def _told(options: Options) -> dict[str, Any]:
    """Takes what every one of these commands is told out of the options."""
    return {"verbosity": take_verbosity(options), "metrics": take_metrics_address(options)}


def _starts(role: str) -> Start:
    def start(
        config: Config, sources: Sources, run_dir: str | None, experiment: str, options: Options
    ) -> int:
        from actorlearner.roles.start import start_role

        _check_servers(config, options.get("replay_address", ()))
        told: dict[str, Any] = {
            "verbosity": take_verbosity(options),
            "metrics": take_metrics_address(options),
        }
        return start_role(role, config, sources, run_dir, options, experiment, **told)

    return start


def _check_servers(config: Config, addresses: Sequence[str]) -> None:
    """Refuses a replay server that no collect actor would write to, where their number is configured.

    Raises:
      ConfigurationError: `collect.actors` is less than the number of servers.
    """
    actors = config.collect.actors
    if actors is not None and actors < len(addresses):
        problem = f"collect.actors: {actors} cannot work with {len(addresses)} servers in --replay_address"
        allowed = f"at least {len(addresses)}, or training never starts: each actor writes to one server"
        raise ConfigurationError([f"{problem}; allowed: {allowed}"])


def _role(
    role: str, summary: str, description: str, example: str, flags: Mapping[str, Flag], *checks: Check
) -> Command:
    configure = _configure_learner if role == LEARNER_ROLE else _configure_actor
    start, all_flags = _starts(role), {**flags, **_EVERYWHERE}
    return configured(summary, description, example, start, all_flags, *checks, configure=configure)


def _configure_actor(config: Config) -> bool:
    from actorlearner.process.devices import use_cpu

    use_cpu(threads=1)
    return True


def _configure_learner(config: Config) -> bool:
    if config.learn.strategy == MULTI_WORKER:
        return False  # Its strategy comes before all else, and waits for the other learners.
    from actorlearner.learning.strategy import configure_learner

    configure_learner(config)
    return True


LOCAL = configured(
    "train on this machine: every role as a process of its own",
    "Starts a replay server, the collect actors, an eval actor and a learner on this machine, and ends "
    "when the learner has finished and its last policy is evaluated.",
    "--config sac_pendulum --set learn.train_steps=20000 collect.actors=2",
    _local,
    {"network": _NETWORK, **_EVERYWHERE},
    holds_replay,
    starts_one_learner("local"),
)

REPLAY_SERVER = _role(
    "replay-server",
    "hold the experience, and pass the policy variables on",
    "Serves the experience table and the variable container of one run until it is told to stop.",
    "--config sac_pendulum --port 8008",
    {"port": _PORT},
    holds_replay,
)

COLLECT_ACTOR = _role(
    "collect-actor",
    "act in environments and write transitions into replay",
    "Steps environments with the newest collect policy and writes what happens into replay. Start as "
    "many as you like, each with an index of its own.",
    "--config sac_pendulum --replay_address replay.host:8008 --actor_index 0",
    {"replay_address": _REPLAY_ADDRESS, "actor_index": _ACTOR_INDEX},
)

EVAL_ACTOR = _role(
    "eval-actor",
    "measure the greedy policy now and then",
    "Plays whole episodes with the greedy policy of train step 0, of every evaluate.interval train "
    "steps and of the last one.",
    "--config sac_pendulum --replay_address replay.host:8008",
    {"replay_address": _REPLAY_ADDRESS},
)

LEARNER = _role(
    "learner",
    "train the agent, and publish its policy variables",
    "Trains on batches from replay, publishes the policy variables, and writes checkpoints and policies.",
    "--config sac_pendulum --replay_address replay.host:8008",
    {"replay_address": _REPLAY_ADDRESS},
    trains_in_its_group,
)
