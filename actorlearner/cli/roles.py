"""`replay-server`, `collect-actor`, `eval-actor`, `learner`: one role as this process."""

import argparse
import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from actorlearner.cli.arguments import (
    add_output_flags,
    add_tls,
    checked_certificate,
    index,
    metrics_address,
    verbosity,
)
from actorlearner.cli.command import Commands, StartCommand, add_command, parsed_by
from actorlearner.cli.experiment import (
    CommandCheck,
    Experiment,
    add_experiment,
    load_experiment,
    naming_sources,
)
from actorlearner.config.addresses import HIGHEST_PORT, read_addresses, read_port
from actorlearner.config.checks import MULTI_WORKER
from actorlearner.config.problems import problem
from actorlearner.config.schema import Config
from actorlearner.learning.cluster import learner_cluster
from actorlearner.network.hidden_server import TlsProxy, hide_this_process, proxy_of_this_process
from actorlearner.network.ports import free_port
from actorlearner.process.role_names import COLLECT_ACTOR, EVAL_ACTOR, LEARNER, REPLAY_SERVER
from actorlearner.process.tensorflow_setup import limit_tensorflow
from actorlearner.roles.start import RoleRequest, start_role


def add_to(commands: Commands) -> None:
    """Adds the commands."""
    _add_replay_server(commands)
    _add_collect_actor(commands)
    _add_client(
        commands,
        EVAL_ACTOR,
        summary="evaluate the greedy policy periodically",
        description=(
            "Plays whole episodes with the greedy policy of train step 0, of every evaluate.interval train "
            "steps and of the last one. Ends at once if that key is null."
        ),
        example="--config sac_pendulum --replay_address replay.host:8008",
    )
    _add_client(
        commands,
        LEARNER,
        summary="train the agent, and publish its policy variables",
        description=(
            "Trains on batches from replay, publishes the policy variables, and writes checkpoints and "
            "policies."
        ),
        example="--config sac_pendulum --replay_address replay.host:8008",
    )


def _add_replay_server(commands: Commands) -> None:
    parser = _add_role(
        commands,
        REPLAY_SERVER,
        _start_replay_server,
        summary="serve the experience table and the variable container",
        description="Serves the experience table and the variable container of one run until it is stopped.",
        example="--config sac_pendulum --port 8008",
    )
    parser.add_argument(
        "--port",
        metavar="PORT",
        required=True,
        type=parsed_by("--port", read_port),
        help=f"the port to serve on, 1 to {HIGHEST_PORT}",
    )


def _add_collect_actor(commands: Commands) -> None:
    parser = _add_client(
        commands,
        COLLECT_ACTOR,
        summary="act in environments and write transitions into replay",
        description=(
            "Steps environments with the newest collect policy and writes the transitions into replay. Start "
            "as many as you like (with PPO as many as collect.actors), each with an index of its own."
        ),
        example="--config sac_pendulum --replay_address replay.host:8008 --actor_index 0",
    )
    parser.add_argument(
        "--actor_index",
        metavar="I",
        required=True,
        type=parsed_by("--actor_index", index),
        help="which of the collect actors this is, counted from 0",
    )


def _add_client(commands: Commands, role: str, **texts: str) -> argparse.ArgumentParser:
    """Adds a role that connects to the replay server."""
    parser = _add_role(commands, role, functools.partial(_start_client, role), **texts)
    parser.add_argument(
        "--replay_address",
        metavar="HOST:PORT[,...]",
        required=True,
        type=parsed_by("--replay_address", read_addresses),
        help="where the replay server listens; of several, the first has the policy variables, each collect "
        "actor writes to one, and the learner samples from all",
    )
    return parser


def _add_role(commands: Commands, role: str, start: StartCommand, **texts: str) -> argparse.ArgumentParser:
    parser = add_command(commands, role, start, **texts)
    add_experiment(parser)
    add_tls(parser)
    add_output_flags(parser)
    return parser


def _start_replay_server(arguments: argparse.Namespace, problems: list[str]) -> int:
    certificate = checked_certificate(arguments, problems)
    if certificate is not None:
        if (port := arguments.metrics_port) is not None:
            problems.append(f"--metrics_port: {port} cannot be used; allowed: without --tls")
        if not problems:
            hide_this_process(arguments.port)
    experiment = load_experiment(arguments, problems, prepare=functools.partial(_prepare, REPLAY_SERVER))
    if certificate is None:
        return _start(REPLAY_SERVER, arguments, experiment, {"port": arguments.port})
    proxy = proxy_of_this_process(certificate)
    return _start(REPLAY_SERVER, arguments, experiment, {"port": free_port()}, proxy=proxy)


def _start_client(role: str, arguments: argparse.Namespace, problems: list[str]) -> int:
    certificate = checked_certificate(arguments, problems)
    servers = len(arguments.replay_address or ())
    checks: list[CommandCheck] = [functools.partial(_server_problems, servers=servers)]
    options = {"replay_address": arguments.replay_address}
    if role == COLLECT_ACTOR:
        options["actor_index"] = arguments.actor_index
    if role == LEARNER:
        checks.insert(0, _group_problems)
    experiment = load_experiment(arguments, problems, *checks, prepare=functools.partial(_prepare, role))
    return _start(role, arguments, experiment, options, certificate)


def _start(
    role: str,
    arguments: argparse.Namespace,
    experiment: Experiment,
    options: dict[str, Any],
    certificate: Path | None = None,
    proxy: TlsProxy | None = None,
) -> int:
    request = RoleRequest(
        role,
        experiment.config,
        experiment.sources,
        run_dir=experiment.run_dir,
        experiment=experiment.name,
        options=options,
        verbosity=verbosity(arguments),
        metrics=metrics_address(arguments),
        certificate=certificate,
        proxy=proxy,
    )
    with naming_sources(experiment):
        return start_role(request)


def _prepare(role: str, config: Config) -> bool:
    """Configures TensorFlow for a role; returns whether the user's code may be imported now."""
    if role == LEARNER and config.learn.strategy == MULTI_WORKER:
        # The strategy must be created before user code runs, and that blocks until all learners have joined.
        return False
    if role == LEARNER:
        from actorlearner.learning.strategy import configure_learner

        configure_learner(config)
    elif role == COLLECT_ACTOR:
        limit_tensorflow(config.collect.threads, gpus=config.collect.gpus)
    else:
        limit_tensorflow(threads=1)
    return True


def _server_problems(config: Config, servers: int) -> Iterable[str]:
    """Checks that each replay server gets a collect actor: one without would block training."""
    actors = config.collect.actors
    if actors is not None and actors < servers:
        wrong = f"{actors} cannot work with {servers} servers in --replay_address"
        allowed = f"at least {servers}, or training never starts: each actor writes to one server"
        yield problem("collect.actors", wrong, allowed)


def _group_problems(config: Config) -> Iterable[str]:
    """Checks that TF_CONFIG describes the group that a learner trains in, if any; raises what is wrong."""
    learner_cluster(config)
    return ()
