"""A small run whose environments number their env steps, and the account of its transitions at the end."""

import dataclasses
from collections.abc import Collection
from pathlib import Path

from actorlearner.agents.configuration import load_config
from actorlearner.config.resolved import to_yaml
from actorlearner.config.schema import Config
from actorlearner.environments.specs import load_specs
from actorlearner.replay.checkpoints import newest_checkpoint
from actorlearner.replay.layout import make_layout
from benchmarks.chaos.account import Account, Writing, make_account
from benchmarks.chaos.experiment import under_chaos
from benchmarks.chaos.numbered import Produced, read_produced
from benchmarks.chaos.store import read_items
from tests.support.ports import unused_port
from tests.support.processes import TINY_RUN


def write_config(directory: Path, train_steps: int, training_s: float, *, actors: int) -> Path:
    """Writes the configuration of a run that evaluates every 500 train steps; returns its file.

    Args:
      directory: gets the file and the logs of env steps.
      train_steps: of the run.
      training_s: how long the environments make training last, in seconds.
      actors: the number of collect actors.
    """
    own = (f"learn.train_steps={train_steps}", "evaluate.interval=500", f"collect.actors={actors}")
    config = under_chaos(load_config("td3_pendulum", (*TINY_RUN, *own)), directory / "steps", training_s)
    evaluate = dataclasses.replace(config.evaluate, kwargs={"directory": str(directory / "evaluated")})
    file = directory / "numbered.yaml"
    file.write_text(to_yaml(dataclasses.replace(config, evaluate=evaluate)))
    return file


def account(directory: Path, config_file: Path, replay_dir: Path) -> Account:
    """Returns the outcome of all transitions of a run of `write_config` that has ended."""
    return account_of(load_config(str(config_file)), read_produced(directory / "steps"), replay_dir)


def account_of(
    config: Config, produced: list[Produced], replay_dir: Path, killed: Collection[int] = ()
) -> Account:
    """Returns the outcome of transitions, from the last checkpoint of a replay server's run directory.

    Args:
      config: of the run.
      produced: the env steps that were taken.
      replay_dir: the run directory of the replay server.
      killed: the process ids of the collect actors that were killed.
    """
    layout = make_layout(config, load_specs(config.environment))
    checkpoint = newest_checkpoint(replay_dir / "checkpoints" / "replay")
    assert checkpoint is not None
    return make_account(
        produced,
        read_items(checkpoint[0], layout, unused_port()),
        writing=Writing(layout.env_steps_per_item, shared=True, n_step=1),
        killed=killed,
        losses=(),
    )
