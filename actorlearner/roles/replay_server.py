"""The replay server: the experience table and the variable container in one Reverb server."""

import logging
import os
import socket

from actorlearner.agents.make import make_agent
from actorlearner.config.schema import Config, ReplayConfig
from actorlearner.devices import use_cpu
from actorlearner.environments.specs import load_specs
from actorlearner.errors import RunError
from actorlearner.metrics import METRICS_INTERVAL_S, MetricsWriter
from actorlearner.replay.layout import make_layout
from actorlearner.replay.status import ReplayMonitor
from actorlearner.replay.tables import experience_table, start_server
from actorlearner.run_directory import RunDirectory
from actorlearner.start_up import StartUp
from actorlearner.stop import Stop
from actorlearner.variables.container import variable_tables

_log = logging.getLogger(__name__)

_STATUS_TIMEOUT_S = 30


def run(config: Config, directory: RunDirectory, stop: Stop, *, port: int) -> None:
    """Serves until `stop`.

    Args:
      config: the experiment.
      directory: where the metrics are written.
      stop: ends the server.
      port: the TCP port to listen on, on all interfaces.

    Raises:
      ConfigurationError: the environment or the agent cannot be made.
      RunError: the port is in use.
    """
    start_up = StartUp()
    use_cpu(threads=1)
    _check_port(port)
    specs = load_specs(config.environment)
    variables = make_agent(config, specs).policy_variables
    start_up.ended("environment and agent")
    layout = make_layout(config, specs)
    server = start_server([experience_table(config, layout), *variable_tables(variables)], port)
    _log.info("serving on port %d, %s", port, _describe(config.replay))
    start_up.ended("tables")
    start_up.tell("ready")
    _record_metrics(ReplayMonitor(server.localhost_client(), layout), directory, stop)
    server.stop()


def _check_port(port: int) -> None:
    """Reverb would share a port with another server, and each would get some of the calls."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as error:
            raise RunError(f"port {port} cannot be listened on: {error.strerror}") from error


def _describe(replay: ReplayConfig) -> str:
    ratio = replay.updates_per_env_step
    limit = "no rate limit" if ratio is None else f"{ratio:g} train steps for each env step"
    return f"sampling from {replay.min_size} transitions on, {limit}"


def _record_metrics(replay: ReplayMonitor, directory: RunDirectory, stop: Stop) -> None:
    metrics = MetricsWriter(directory.metrics("replay"))
    stopped = False
    while not stopped:
        stopped = stop.wait(METRICS_INTERVAL_S)
        status = replay.status(_STATUS_TIMEOUT_S)
        metrics.write(
            {
                "size": status.size,
                "inserts": status.inserts,
                "samples": status.samples,
                "samples_per_insert": status.samples_per_insert,
                "memory_bytes": _resident_bytes(),
            }
        )
    metrics.close()


def _resident_bytes() -> int:
    """The memory that this process holds, from /proc."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
