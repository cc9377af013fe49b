"""Finds the outcome of a run under chaos, after its end."""

from collections.abc import Collection, Sequence
from pathlib import Path

from actorlearner.config.schema import Config
from actorlearner.environments.quiet import quiet_output
from actorlearner.environments.specs import load_specs
from actorlearner.network.ports import free_port
from actorlearner.process.tensorflow_setup import limit_tensorflow
from actorlearner.records.metrics import read_records
from actorlearner.records.run_directory import RunDirectory
from actorlearner.replay.checkpoints import newest_checkpoint
from actorlearner.replay.layout import make_layout
from actorlearner.replay.rate_limit import items
from benchmarks.chaos.account import Account, Writing, make_account
from benchmarks.chaos.downtime import downtimes, signs_of_work
from benchmarks.chaos.harm import Harmer
from benchmarks.chaos.numbered import Produced, read_produced
from benchmarks.chaos.policies import all_steps_back
from benchmarks.chaos.store import read_items
from benchmarks.chaos.verdict import Findings
from benchmarks.chaos.watch import Watch, still_there


def find(
    config: Config,
    directory: RunDirectory,
    steps: Path,
    watch: Watch,
    harmer: Harmer,
    problems: Sequence[str],
) -> Findings:
    """Reads the files of the run, including its complete last replay checkpoint.

    Args:
      config: the experiment.
      directory: of the run.
      steps: the directory in which env steps are noted.
      watch: what was seen of the processes.
      harmer: what was done to them.
      problems: what is known to have gone wrong.
    """
    roles = watch.roles
    produced = [each for each in read_produced(steps) if roles[each.pid].startswith("collect-actor")]
    signs = signs_of_work(config, directory, produced, watch, harmer.done)
    problems = [*problems, *watch.unasked]
    account = _account(config, directory, produced, watch, harmer.killed, problems)
    checked, back = all_steps_back(directory.metrics("eval").parent)
    return Findings(
        train_step=_last(directory, "learner"),
        evaluated=_last(directory, "eval"),
        train_steps=config.learn.train_steps,
        elapsed_s=watch.elapsed_s,
        done=harmer.done,
        not_done=harmer.left,
        downtimes=downtimes(harmer.done, signs, watch.ended),
        account=account,
        policy_records=checked,
        policies_back=back,
        left=still_there(set(roles)),
        problems=problems,
    )


def _last(directory: RunDirectory, name: str) -> int:
    records = read_records(directory.metrics(name))
    return int(records[-1]["train_step"]) if records else -1


def _account(
    config: Config,
    directory: RunDirectory,
    produced: Sequence[Produced],
    watch: Watch,
    killed: Collection[int],
    problems: list[str],
) -> Account:
    limit_tensorflow(threads=1)
    layout = make_layout(config, load_specs(config.environment))
    checkpoint = newest_checkpoint(directory.replay_checkpoints)
    if checkpoint is None:
        problems.append("there is no complete checkpoint of replay")
        stored = []
    else:
        with quiet_output():  # Reverb prints to stdout.
            stored = read_items(checkpoint[0], layout, free_port())
    size = layout.env_steps_per_item
    if sum(len(part.reward) for part in stored) > (items(config.replay.capacity, size) - 1) * size:
        problems.append("replay is full, so lost transitions cannot be counted")
    return make_account(
        produced,
        stored,
        writing=Writing(size, shared=config.replay.layout == "packed", n_step=config.agent.n_step),
        killed=killed,
        losses=watch.losses,
    )
