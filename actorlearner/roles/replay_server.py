"""The replay server: the experience table and the variable container in one Reverb server."""

import concurrent.futures
import logging
import time
from collections.abc import Callable, Sequence

import reverb

from actorlearner.agents.experience import Experience
from actorlearner.agents.make import make_agent
from actorlearner.config.schema import Config, ReplayConfig
from actorlearner.environments.specs import load_specs
from actorlearner.errors import RunError
from actorlearner.network.ports import check_port
from actorlearner.process.heartbeat import LONG_PATIENCE_S, beat
from actorlearner.process.ram import resident_bytes
from actorlearner.process.startup_timer import StartupTimer
from actorlearner.process.stop import Stop
from actorlearner.process.tensorflow_setup import limit_tensorflow
from actorlearner.records.metrics import METRICS_INTERVAL_S, MetricsWriter
from actorlearner.records.run_directory import RunDirectory
from actorlearner.records.seal import newest_complete
from actorlearner.records.summaries import Summaries
from actorlearner.replay.capacity import check_memory
from actorlearner.replay.checkpoints import ReplayCheckpoints, saved_transitions
from actorlearner.replay.connection import ReplayServer
from actorlearner.replay.experience_table import experience_table
from actorlearner.replay.identity import announce, identity_table
from actorlearner.replay.layout import make_layout
from actorlearner.replay.reverb_calls import UNREACHABLE
from actorlearner.replay.status import BlockedFractions, BlockedTime, ReplayStatus
from actorlearner.variables.container import variable_tables
from actorlearner.variables.last_policies import LastPolicies

_log = logging.getLogger(__name__)

_STATUS_TIMEOUT_S = 30
_END_INTERVAL_S = 0.5
_SAVING_NOTICE_S = 2.0
_SAVING_INTERVAL_S = 0.25
"""Seconds between two polls of a write in progress."""


def run(config: Config, directory: RunDirectory, stop: Stop, *, port: int) -> None:
    """Restores the newest complete checkpoint, serves until `stop`, and saves at the end.

    Args:
      config: the experiment.
      directory: the run directory, for checkpoints and metrics.
      stop: ends the server.
      port: the TCP port to listen on, on all interfaces.

    Raises:
      ConfigurationError: the environment or the agent cannot be made, or there is not enough memory.
      RunError: the port is in use, or the checkpoint does not fit the tables.
    """
    start_up = StartupTimer()
    limit_tensorflow(threads=1)
    check_port(port)
    specs = load_specs(config.environment)
    layout = make_layout(config, specs)
    variables = make_agent(config, specs).policy_variables
    check_memory(config, layout, saved_transitions(directory.replay_checkpoints))
    start_up.ended("environment and agent")
    checkpoints = ReplayCheckpoints(directory.replay_checkpoints, config, layout)
    run_id = directory.own_run_id()
    tables = [experience_table(config, layout), *variable_tables(variables), identity_table(run_id)]
    reverb_server = _start(tables, port, checkpoints)
    server = ReplayServer(reverb_server.localhost_client(), layout, run_id)

    def save() -> bool:
        beat("writing a checkpoint", patience_s=LONG_PATIENCE_S)
        return checkpoints.save(server)

    last_policies = LastPolicies(server.client, config.learn.train_steps, save)
    last_policies.remove_outdated(learner_rolls_back=_learner_rolls_back(directory, config))
    announce(server.client, run_id, config)
    _log.info("serving run %s on port %d, %s", run_id, port, _describe(config.replay, layout.experience))
    start_up.ended("tables")
    start_up.report("ready")
    records = _Records(server, config, directory)
    _serve(records, save, config.replay.checkpoint_interval_s, last_policies, stop)
    if save_last(save, stop):
        reverb_server.stop()


def _learner_rolls_back(directory: RunDirectory, config: Config) -> bool:
    """Returns whether the learner will resume before the last train step.

    False if the learner's checkpoints are not in this run directory.
    """
    if not directory.learner_checkpoints.exists():
        return False
    # No log of damaged checkpoints here: the learner logs them.
    newest = newest_complete(directory.learner_checkpoints)
    return newest is None or newest[1]["train_step"] < config.learn.train_steps


def save_last(save: Callable[[], bool], stop: Stop) -> bool:
    """Writes the last checkpoint, without a deadline; a SIGINT after the log line about it gives up.

    Returns:
      False after giving up; the write may then still be in progress.
    """
    saving = concurrent.futures.ThreadPoolExecutor(1, "save").submit(save)
    concurrent.futures.wait([saving], _SAVING_NOTICE_S)
    seen = stop.interrupts
    if not saving.done():
        _log.info("saving replay; Ctrl-C gives up, and loses the transitions since the last checkpoint")
    while not saving.done():
        concurrent.futures.wait([saving], _SAVING_INTERVAL_S)
        if stop.interrupts > seen:
            _log.warning("replay was not saved: the transitions since the last checkpoint are lost")
            return False
    saving.result()
    return True


def _start(tables: Sequence[reverb.Table], port: int, checkpoints: ReplayCheckpoints) -> reverb.Server:
    try:
        return reverb.Server(tables, port, checkpoints.restoring_checkpointer())
    except (RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise RunError(
            f"the replay server cannot start with the checkpoints in {checkpoints.directory}: {reason}; "
            "allowed: the version that wrote them, or to remove this directory and continue with an empty "
            "replay"
        ) from error


def _describe(replay: ReplayConfig, experience: Experience) -> str:
    if experience.iteration is not None:
        return "each sequence is sampled once"
    ratio = replay.updates_per_env_step
    limit = "no rate limit" if ratio is None else f"{ratio:g} train steps for each env step"
    return f"sampling from {replay.min_size} transitions on, {limit}"


class _Records:
    """The metrics and the curves of a replay server."""

    def __init__(self, server: ReplayServer, config: Config, directory: RunDirectory) -> None:
        self._server = server
        self._batch_size = config.learn.batch_size
        self._metrics = MetricsWriter(directory.metrics("replay"))
        self._summaries = Summaries(directory.summaries("replay"))
        self._blocked = BlockedTime()

    def write(self) -> bool:
        """Writes the current status; returns False if the server does not answer, which is logged."""
        try:
            status = self._server.status(_STATUS_TIMEOUT_S)
        except UNREACHABLE:
            _log.warning("this server did not answer within %d s", _STATUS_TIMEOUT_S)
            return False
        beat("serving, transitions so far", status.inserts)
        record = _record(status, self._blocked.update(status))
        self._metrics.write(record)
        curves = {f"replay/{key}": value for key, value in record.items()}
        self._summaries.scalars(curves, self._train_step(status))
        self._summaries.flush()
        return True

    def _train_step(self, status: ReplayStatus) -> int:
        """Converts samples to train steps. Each of several servers counts only the samples that it served."""
        batches = status.samples // self._batch_size
        iteration = self._server.layout.experience.iteration
        return batches if iteration is None else batches * iteration.epochs


def _record(status: ReplayStatus, blocked: BlockedFractions | None) -> dict[str, float | None]:
    return {
        "size": status.size,
        "inserts": status.inserts,
        "samples": status.samples,
        "samples_per_insert": status.samples_per_insert,
        "inserts_barred_fraction": None if blocked is None else blocked.inserts,
        "sampling_barred_fraction": None if blocked is None else blocked.sampling,
        "memory_bytes": resident_bytes(),
    }


def _serve(
    records: _Records,
    save: Callable[[], bool],
    save_interval_s: float | None,
    last_policies: LastPolicies,
    stop: Stop,
) -> None:
    """Writes records, checkpoints and the last policies, each when it is due, until `stop`."""
    saved = time.monotonic()
    stopped = False
    while not stopped:
        stopped = _save_last_policies_until_next_record(last_policies, stop)
        answered = records.write()
        due = save_interval_s is not None and time.monotonic() - saved >= save_interval_s
        if answered and due and not stopped:
            save()
            saved = time.monotonic()


def _save_last_policies_until_next_record(last_policies: LastPolicies, stop: Stop) -> bool:
    """Waits METRICS_INTERVAL_S, or until a stop; returns whether to stop.

    Meanwhile it saves the last policies, once they are published.
    """
    until = time.monotonic() + METRICS_INTERVAL_S
    while (left_s := until - time.monotonic()) > 0:
        if stop.wait(min(left_s, _END_INTERVAL_S)):
            return True
        last_policies.save_once_published()
    return stop.requested
