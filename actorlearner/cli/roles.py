"""`replay-server`, `collect-actor`, `eval-actor`, `learner`: one role as this process."""

import argparse
import functools
from collections.abc import Callable, Iterable

from actorlearner.cli.arguments import (
    add_output_flags,
    add_tls,
    checked_certificate,
    index,
    metrics_address,
    verbosity,
)
from actorlearner.cli.command import Commands, add_command, parsed_by
from actorlearner.cli.experiment import CommandCheck, add_experiment, load_experiment, naming_sources
from actorlearner.config.addresses import HIGHEST_PORT, read_addresses, read_port
from actorlearner.config.checks import MULTI_WORKER
from actorlearner.config.problems import problem
from actorlearner.config.schema import Config
from actorlearner.learning.cluster import learner_cluster
from actorlearner.network.hidden import hide_this_process, proxy_of_this_process
from actorlearner.network.ports import free_port
from actorlearner.process.process import Start
from actorlearner.process.role_names import COLLECT_ACTOR, EVAL_ACTOR, LEARNER, REPLAY_SERVER


def add_to(commands: Commands) -> None:
    """Adds the commands."""
    server = _add_role(
        commands,
        REPLAY_SERVER,
        summary="serve the experience table and the variable container",
        description="Serves the experience table and the variable container of one run until it is stopped.",
        example="--config sac_pendulum --port 8008",
    )
    server.add_argument(
        "--port",
        metavar="PORT",
        required=True,
        type=parsed_by("--port", read_port),
        help=f"the port to serve on, 1 to {HIGHEST_PORT}",
    )
    actor = _add_role(
        commands,
        COLLECT_ACTOR,
        prepare=_prepare_collect_actor,
        summary="act in environments and write transitions into replay",
        description=(
            "Steps environments with the newest collect policy and writes the transitions into replay. Start "
            "as many as you like (with PPO as many as collect.actors), each with an index of its own."
        ),
        example="--config sac_pendulum --replay_address replay.host:8008 --actor_index 0",
    )
    _add_replay_addresses(actor)
    actor.add_argument(
        "--actor_index",
        metavar="I",
        required=True,
        type=parsed_by("--actor_index", index),
        help="which of the collect actors this is, counted from 0",
    )
    evaluator = _add_role(
        commands,
        EVAL_ACTOR,
        summary="evaluate the greedy policy periodically",
        description=(
            "Plays whole episodes with the greedy policy of train step 0, of every evaluate.interval train "
            "steps and of the last one. Ends at once if that key is null."
        ),
        example="--config sac_pendulum --replay_address replay.host:8008",
    )
    _add_replay_addresses(evaluator)
    learner = _add_role(
        commands,
        LEARNER,
        _group_problems,
        prepare=_prepare_learner,
        summary="train the agent, and publish its policy variables",
        description=(
            "Trains on batches from replay, publishes the policy variables, and writes checkpoints and "
            "policies."
        ),
        example="--config sac_pendulum --replay_address replay.host:8008",
    )
    _add_replay_addresses(learner)


def _prepare_actor(config: Config) -> bool:
    from actorlearner.process.tensorflow_setup import limit_tensorflow

    limit_tensorflow(threads=1)
    return True


def _prepare_collect_actor(config: Config) -> bool:
    from actorlearner.process.tensorflow_setup import limit_tensorflow

    limit_tensorflow(config.collect.threads, gpus=config.collect.gpus)
    return True


def _prepare_learner(config: Config) -> bool:
    if config.learn.strategy == MULTI_WORKER:
        # The strategy must be created before user code runs, and that blocks until all learners have joined.
        return False
    from actorlearner.learning.strategy import configure_learner

    configure_learner(config)
    return True


def _add_role(
    commands: Commands,
    role: str,
    *checks: CommandCheck,
    prepare: Callable[[Config], bool] = _prepare_actor,
    **texts: str,
) -> argparse.ArgumentParser:
    def start(arguments: argparse.Namespace, problems: list[str]) -> int:
        certificate = checked_certificate(arguments, problems)
        if certificate is not None and role == REPLAY_SERVER:
            if (port := arguments.metrics_port) is not None:
                problems.append(f"--metrics_port: {port} cannot be used; allowed: without --tls")
            if not problems:
                hide_this_process(arguments.port)
        addresses = getattr(arguments, "replay_address", None) or ()
        server_check = functools.partial(_server_problems, servers=len(addresses))
        experiment = load_experiment(arguments, problems, *checks, server_check, prepare=prepare)
        role_flags = ("port", "replay_address", "actor_index")
        options = {name: getattr(arguments, name) for name in role_flags if name in arguments}
        proxy = None
        if certificate is not None and role == REPLAY_SERVER:
            proxy, certificate = proxy_of_this_process(certificate), None
            options["port"] = free_port()
        request = Start(
            experiment.config,
            experiment.sources,
            experiment.run_dir,
            experiment.name,
            options,
            verbosity(arguments),
            metrics_address(arguments),
            certificate,
            proxy,
        )
        from actorlearner.roles.start import start_role

        with naming_sources(experiment):
            return start_role(role, request)

    parser = add_command(commands, role, start, **texts)
    add_experiment(parser)
    add_tls(parser)
    add_output_flags(parser)
    return parser


def _add_replay_addresses(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--replay_address",
        metavar="HOST:PORT[,...]",
        required=True,
        type=parsed_by("--replay_address", read_addresses),
        help="where the replay server listens; of several, the first has the policy variables, each collect "
        "actor writes to one, and the learner samples from all",
    )


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
