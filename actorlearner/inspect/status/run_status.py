"""The status of a run, read from its directory without TensorFlow."""

import dataclasses
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from actorlearner.agents.configuration import load_config
from actorlearner.agents.registry import find_builder
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError
from actorlearner.inspect.bottleneck.verdict import Bottleneck, find_bottlenecks
from actorlearner.inspect.bottleneck.waits import Waits, recent_waits
from actorlearner.process.heartbeat import read_heartbeat
from actorlearner.process.role_names import EVAL_ACTOR, LEARNER, REPLAY_SERVER
from actorlearner.records.metrics import (
    current_rate,
    newest_records,
    read_records,
    time_left_s,
    without_rolled_back,
)
from actorlearner.records.run_directory import RunDirectory
from actorlearner.records.run_files import RunFiles

RUNNING, FINISHED, NOT_RUNNING = "running", "finished", "not running"
WORKING, STARTING, SILENT = "working", "starting", "silent"


@dataclasses.dataclass(frozen=True)
class RoleStatus:
    """The status of a role's process.

    Attributes:
      name: the role, with its index if there are several.
      state: WORKING, STARTING, or SILENT: its heartbeat is older than its patience.
      doing: the activity in its last heartbeat.
      age_s: seconds since its last heartbeat.
      up_s: seconds since its start; None if the heartbeat has none.
      restarts: the number of its processes that died one after the other.
      memory_bytes: resident memory, as last reported; None before the first report.
    """

    name: str
    state: str
    doing: str
    age_s: float
    up_s: float | None
    restarts: int
    memory_bytes: int | None


@dataclasses.dataclass(frozen=True)
class RunStatus:
    """The status of a run. Unknown values are None or empty.

    The directory of a role that was started by itself has only the values that this role knows.

    Attributes:
      run_dir, run_id: the run.
      time: the time of reading, in Unix seconds.
      state: RUNNING, FINISHED or NOT_RUNNING.
      train_step, train_steps: the newest train step, and the total of the run.
      train_steps_per_s, env_steps_per_s: rates of the newest records; 0 if the run is not running.
      env_steps: the sum over all actors, by their metrics or the learner's.
      time_left_s: seconds to the last train step at the last minute's rate.
      roles: the roles that have a heartbeat.
      actors: the newest record of each collect actor, with its `name` and its current rate.
      learner: the newest record of the learner.
      replay: the newest record of replay, with `capacity` (None where experience is consumed once) and
        `samples_per_insert_wanted`.
      evaluates: whether evaluation is on.
      last_evaluation, best_evaluation: their `train_step` and `average_return`, and their `average_info`
        with `environment.info_metrics`.
      collect_return: the mean of the actors' average returns.
      faults: the number of environment faults.
      restarts: the number of restarts of all roles.
      waits: the shares of time of the actors and of the learner over the last minute.
      bottlenecks: the bottlenecks of the last minute.
    """

    run_dir: str
    run_id: str | None
    time: float
    state: str
    train_step: int | None
    train_steps: int
    train_steps_per_s: float | None
    env_steps: int | None
    env_steps_per_s: float | None
    time_left_s: float | None
    roles: list[RoleStatus]
    actors: list[dict[str, Any]]
    learner: dict[str, Any]
    replay: dict[str, Any]
    evaluates: bool
    last_evaluation: dict[str, Any] | None
    best_evaluation: dict[str, Any] | None
    collect_return: float | None
    faults: int
    restarts: int
    waits: Waits
    bottlenecks: list[Bottleneck]


def open_run(path: Path) -> tuple[RunFiles, Config]:
    """Returns the files and the configuration of the run in a directory.

    Raises:
      ConfigurationError: the directory holds no run, or its configuration cannot be read.
    """
    directory = RunDirectory(path)
    if not directory.holds_a_run:
        raise ConfigurationError([f"RUN_DIR: {path} is no run directory; allowed: one with config.yaml"])
    return RunFiles([directory]), load_config(str(directory.config))


def read_status(files: RunFiles, config: Config) -> RunStatus:
    """Returns the status of a run; writes nothing and does not block.

    Args:
      files: the files of the run.
      config: its configuration.

    Raises:
      ConfigurationError: the manifest cannot be read.
    """
    now = time.time()
    consumed_once = find_builder(config.agent.name).experience(config.agent).iteration is not None
    learner_records = newest_records(files.metrics("learner"))
    actor_records = {path.stem: newest_records(path) for path in files.collect_metrics()}
    learner, replay = _last(learner_records), _last(newest_records(files.metrics("replay")))
    actors = [_actor(name, records) for name, records in actor_records.items()]
    evaluations = without_rolled_back(read_records(files.metrics("eval")))
    newest = {LEARNER: learner, REPLAY_SERVER: replay, EVAL_ACTOR: _last(evaluations)}
    newest |= {role_of(actor): actor for actor in actors}
    roles = [role for path in files.heartbeats() if (role := _role(path, newest.get(path.stem, {}), now))]
    train_step, train_steps = learner.get("train_step"), config.learn.train_steps
    state = _state(files, config, roles, train_step, evaluations)
    running = state == RUNNING
    env_steps = (_sum(actor.get("env_steps") for actor in actors), learner.get("env_steps"))
    waits = recent_waits(learner_records, list(actor_records.values()))
    first = files.directories[0]
    return RunStatus(
        run_dir=str(first.path),
        run_id=first.run_id,
        time=now,
        state=state,
        train_step=train_step,
        train_steps=train_steps,
        train_steps_per_s=current_rate(learner_records, "train_steps_per_s") if running else 0.0,
        env_steps=max((count for count in env_steps if count is not None), default=None),
        env_steps_per_s=_sum(actor["env_steps_per_s"] for actor in actors) if running else 0.0,
        time_left_s=time_left_s(learner_records, train_steps) if running else None,
        roles=roles,
        actors=actors,
        learner=learner,
        replay=replay and replay | _wanted(config, consumed_once=consumed_once),
        evaluates=config.evaluate.interval is not None,
        last_evaluation=_evaluation(evaluations[-1]) if evaluations else None,
        best_evaluation=_best(evaluations),
        collect_return=_mean_return(actors),
        faults=_sum(actor.get("faults") for actor in actors) or 0,
        restarts=sum(role.restarts for role in roles),
        waits=waits,
        bottlenecks=find_bottlenecks(waits, config.replay.updates_per_env_step, consumed_once=consumed_once),
    )


def is_finished(config: Config, train_step: int, evaluated: int) -> bool:
    """Returns whether the last train step was taken and its policy evaluated, if evaluation is on.

    Args:
      config: the run's configuration.
      train_step: the newest one.
      evaluated: the train step of the last evaluation; -1 without one.
    """
    reached = train_step if config.evaluate.interval is None else min(train_step, evaluated)
    return reached >= config.learn.train_steps


def role_of(actor: Mapping[str, Any]) -> str:
    """Returns the name of the role that wrote one of `RunStatus.actors`."""
    return str(actor["name"]).replace("collect-", "collect-actor-")


def _actor(name: str, records: list[dict[str, Any]]) -> dict[str, Any]:
    rate = current_rate(records, "env_steps_per_s")
    return {"name": name} | _last(records) | {"env_steps_per_s": rate}


def _last(records: list[dict[str, Any]]) -> dict[str, Any]:
    return records[-1] if records else {}


def _wanted(config: Config, *, consumed_once: bool) -> dict[str, Any]:
    updates = config.replay.updates_per_env_step
    wanted = None if updates is None else updates * config.learn.batch_size
    capacity = None if consumed_once else config.replay.capacity
    return {"capacity": capacity, "samples_per_insert_wanted": wanted}


def _sum(values: Iterable[Any]) -> Any:
    """Returns the sum of the known values; None if all are unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _mean_return(actors: list[dict[str, Any]]) -> float | None:
    values = [actor["average_return"] for actor in actors if actor.get("average_return") is not None]
    return sum(values) / len(values) if values else None


def _evaluation(record: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("train_step", "average_return", "average_info")
    return {key: record[key] for key in keys if key in record}


def _best(evaluations: list[dict[str, Any]]) -> dict[str, Any] | None:
    finite = [record for record in evaluations if record["average_return"] is not None]
    # The last of equal evaluations, as in `BestRecord.order`.
    best = max(finite, key=lambda record: (record["average_return"], record["train_step"]), default=None)
    return None if best is None else _evaluation(best)


def _role(path: Path, record: Mapping[str, Any], now: float) -> RoleStatus | None:
    try:
        heartbeat = read_heartbeat(path)
    except FileNotFoundError:  # The role has just ended.
        return None
    except (OSError, ValueError, TypeError):
        return RoleStatus(path.stem, SILENT, "its heartbeat cannot be read", 0.0, None, 0, None)
    age_s = max(0.0, now - heartbeat.time)
    state = SILENT if age_s > heartbeat.patience_s else WORKING if heartbeat.ready else STARTING
    return RoleStatus(
        path.stem,
        state,
        heartbeat.doing,
        age_s,
        None if heartbeat.started is None else max(0.0, now - heartbeat.started),
        heartbeat.restarts,
        record.get("memory_bytes"),
    )


def _state(
    files: RunFiles,
    config: Config,
    roles: list[RoleStatus],
    train_step: int | None,
    evaluations: list[dict[str, Any]],
) -> str:
    if any(role.state != SILENT for role in roles):
        return RUNNING
    if train_step is None:
        return NOT_RUNNING
    evaluated = evaluations[-1]["train_step"] if evaluations else -1
    if not evaluations and not any(each.log(EVAL_ACTOR).exists() for each in files.directories):
        evaluated = train_step  # The learner's own directory: the evaluations are elsewhere.
    return FINISHED if is_finished(config, train_step, evaluated) else NOT_RUNNING
