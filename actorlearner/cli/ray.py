"""`ray`: trains on a Ray cluster.

Starts the replay server, the learner (with the GPUs of this node) and the eval actor on this node, and
collect actors wherever Ray has a core for one. Prints what `local` prints. Ctrl-C and SIGTERM save and stop
the run. If this command dies in another way, the run continues, and the same command with --run_dir
attaches to it again.
"""

import argparse
from collections.abc import Iterator

from actorlearner.cli.command import Commands, add_command
from actorlearner.cli.experiment import (
    add_collect_actors,
    add_experiment,
    load_experiment,
    naming_sources,
    one_learner_problems,
)
from actorlearner.config.problems import problem
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError


def add_to(commands: Commands) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "ray",
        _start,
        summary="train on a Ray cluster: collect actors on all nodes",
        description=__doc__,
        example="--config sac_halfcheetah --collect_actors 8 --address auto",
    )
    add_experiment(parser)
    add_collect_actors(parser, "how many; each takes one core, and waits until Ray has one")
    parser.add_argument(
        "--address",
        metavar="ADDRESS",
        default="local",
        help="auto or HOST:PORT of the cluster that this node belongs to; default: local, a Ray of this "
        "machine alone, which ends with this command",
    )


def _start(arguments: argparse.Namespace, problems: list[str]) -> int:
    experiment = load_experiment(arguments, problems, one_learner_problems, _gpu_problems)
    try:
        from actorlearner.on_ray.train import run_on_ray
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise ConfigurationError(
            ["ray: ray is not installed; allowed: pip install 'actorlearner[ray]' in this environment"]
        ) from error
    with naming_sources(experiment):
        return run_on_ray(experiment.config, experiment.run_dir, experiment.name, arguments.address)


def _gpu_problems(config: Config) -> Iterator[str]:
    if config.collect.gpus:
        yield problem("collect.gpus", "true cannot work: Ray hides the GPUs from collect actors", "false")
