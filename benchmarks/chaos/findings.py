"""The outcome of a run under chaos, found after its end."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from actorlearner.agents.experience import StoredTransition
from actorlearner.config.schema import Config
from actorlearner.environments.quiet import quiet_output
from actorlearner.environments.specs import load_specs
from actorlearner.network.ports import free_port
from actorlearner.process.tensorflow_setup import limit_tensorflow
from actorlearner.records.metrics import read_records
from actorlearner.records.run_directory import RunDirectory
from actorlearner.replay.checkpoints import newest_checkpoint
from actorlearner.replay.layout import ReplayLayout, make_layout
from actorlearner.replay.rate_limit import items
from benchmarks.chaos.account import Account, Writing, make_account
from benchmarks.chaos.downtime import Downtime, downtimes, working_times
from benchmarks.chaos.harm import Done, Harmer
from benchmarks.chaos.numbered import read_produced
from benchmarks.chaos.policies import all_steps_back
from benchmarks.chaos.store import read_items
from benchmarks.chaos.watch import Watch, still_running


@dataclasses.dataclass(frozen=True)
class Findings:
    """The findings after the end of a run.

    Attributes:
      train_step: the last that the learner recorded.
      evaluated: the last train step that was evaluated; -1 without any.
      train_steps: how many there should be.
      elapsed_s: how long the run took.
      done: the harms, in order.
      not_done: how many harms were still to come when the run ended.
      downtimes: of each role, one for each harm.
      account: of the transitions.
      policy_records: records in which the order of the policies was checked.
      policies_back: where they went backwards.
      left: the ids of the processes that still run.
      problems: all other failures, one sentence each.
    """

    train_step: int
    evaluated: int
    train_steps: int
    elapsed_s: float
    done: Sequence[Done]
    not_done: int
    downtimes: Mapping[str, Sequence[Downtime]]
    account: Account
    policy_records: int
    policies_back: Sequence[str]
    left: Sequence[int]
    problems: Sequence[str]


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
      steps: the directory of the logs of env steps.
      watch: the observations of the processes.
      harmer: the harms.
      problems: the failures of the run that are known already.
    """
    limit_tensorflow(threads=1)
    roles = watch.roles
    produced = [each for each in read_produced(steps) if roles[each.pid].startswith("collect-actor")]
    working = working_times(config, directory, produced, watch, harmer.done)
    layout = make_layout(config, load_specs(config.environment))
    size = layout.env_steps_per_item
    stored = _stored(directory, layout)
    writing = Writing(size, shared=config.replay.layout == "packed", n_step=config.agent.n_step)
    problems = [*problems, *watch.unplanned_deaths]
    if stored is None:
        problems.append("there is no complete checkpoint of replay")
    elif sum(len(part.reward) for part in stored) > (items(config.replay.capacity, size) - 1) * size:
        problems.append("replay is full, so lost transitions cannot be counted")
    checked, back = all_steps_back(directory.metrics("eval").parent)
    return Findings(
        train_step=_last(directory, "learner"),
        evaluated=_last(directory, "eval"),
        train_steps=config.learn.train_steps,
        elapsed_s=watch.elapsed_s,
        done=harmer.done,
        not_done=harmer.left,
        downtimes=downtimes(harmer.done, working, watch.ended),
        account=make_account(
            produced, stored or [], writing=writing, killed=harmer.killed, losses=watch.losses
        ),
        policy_records=checked,
        policies_back=back,
        left=still_running(set(roles)),
        problems=problems,
    )


def _stored(directory: RunDirectory, layout: ReplayLayout) -> list[StoredTransition] | None:
    """Reads the last complete checkpoint of replay; None without one."""
    checkpoint = newest_checkpoint(directory.replay_checkpoints)
    if checkpoint is None:
        return None
    with quiet_output():  # Reverb prints to stdout.
        return read_items(checkpoint[0], layout, free_port())


def _last(directory: RunDirectory, name: str) -> int:
    records = read_records(directory.metrics(name))
    return int(records[-1]["train_step"]) if records else -1
