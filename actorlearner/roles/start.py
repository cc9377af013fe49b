"""Runs a role as this process: the function that the command line and local mode share."""

import dataclasses
import importlib
import logging
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from actorlearner.config.problems import Sources, with_source
from actorlearner.config.schema import Config
from actorlearner.errors import EXIT_FAILED, EXIT_USAGE, ConfigurationError, RunError, first_line
from actorlearner.learning.cluster import learner_cluster
from actorlearner.network.hidden_server import TlsProxy
from actorlearner.network.tls import open_tunnels
from actorlearner.process.role_names import COLLECT_ACTOR, LEARNER
from actorlearner.process.role_process import RoleProcess, Verbosity
from actorlearner.process.stop import Stop
from actorlearner.process.tensorflow_setup import stop_tensor_leak, without_gc
from actorlearner.records.events import ENDED
from actorlearner.records.metrics import written_records
from actorlearner.records.notify import is_supervised
from actorlearner.records.run_directory import RunDirectory, new_run_directory

_log = logging.getLogger(__name__)

RoleFunction = Callable[..., None]
"""The function `run(config, directory, stop, **options)` of a role."""


@dataclasses.dataclass(frozen=True)
class RoleRequest:
    """A request to start a role.

    Attributes:
      role: replay-server, collect-actor, eval-actor or learner.
      config: the experiment.
      sources: where the value of each key comes from, for error messages.
      run_dir: the run directory; None makes a new one under runs/.
      experiment: names a new run directory.
      options: the keyword arguments of the role's `run`.
      verbosity: how much is printed on the terminal.
      metrics: the address and port that Prometheus may scrape; None for no such port.
      certificate: of the run, with which a client of the replay server connects by TLS; None for plain text.
      proxy: where the replay server takes TLS; None for plain text.
    """

    role: str
    config: Config
    sources: Sources
    run_dir: str | None
    experiment: str
    options: Mapping[str, Any]
    verbosity: Verbosity = Verbosity.NORMAL
    metrics: tuple[str, int] | None = None
    certificate: Path | None = None
    proxy: TlsProxy | None = None


def start_role(request: RoleRequest) -> NoReturn:
    """Runs one role until it ends, then ends this process with the role's exit code.

    Raises:
      ConfigurationError: the run directory holds a run of another configuration, or another process runs
        there, or TF_CONFIG is wrong.
      RunError: the run directory cannot be used.
    """
    name = _process_name(request)
    stop = Stop()
    stop.install()
    run_dir = request.run_dir
    directory = RunDirectory(Path(run_dir)) if run_dir else new_run_directory(request.experiment)
    if not is_supervised():  # Else local mode holds it.
        directory.hold()
    directory.prepare(request.config, joins="replay_address" in request.options)
    process = RoleProcess(name, directory, request.verbosity)
    if run_dir is None:
        # A warning, so that --quiet prints it: nothing else says where the role writes.
        _log.warning("run directory: %s", directory.path)
    try:
        _run(request, directory, stop)
    except ConfigurationError as error:
        lines = error.problems
        if not is_supervised():  # Else local mode, which wrote the file, adds the sources.
            directory.withdraw()
            lines = tuple(with_source(line, request.sources) for line in lines)
        process.fail(lines, EXIT_USAGE)
    except RunError as error:
        process.fail([str(error)], EXIT_FAILED)
    except (Exception, SystemExit) as error:  # The user's code may raise anything.
        traceback.print_exc()  # Standard error is the log file by now.
        process.fail([first_line(error)], EXIT_FAILED, crashed=True)
    _log.info("ended, exit code %d", stop.exit_code)
    process.end(stop.exit_code, ENDED, f"exit code {stop.exit_code}")


def import_role(role: str) -> RoleFunction:
    """Imports a role's module, and with it TensorFlow, which takes seconds; returns the role's `run`."""
    run: RoleFunction = importlib.import_module(f"actorlearner.roles.{role.replace('-', '_')}").run
    return run


def _process_name(request: RoleRequest) -> str:
    """Returns the role's name, with its index where a run has several processes of the role."""
    if request.role == LEARNER and (cluster := learner_cluster(request.config)):
        return cluster.name
    if request.role == COLLECT_ACTOR:
        return f"{request.role}-{request.options['actor_index']}"
    return request.role


def _run(request: RoleRequest, directory: RunDirectory, stop: Stop) -> None:
    """Runs the role until it has finished or a stop is requested."""
    if request.metrics is not None:
        from actorlearner.records.prometheus import serve_metrics

        serve_metrics(request.metrics, written_records)
    with without_gc():
        run = import_role(request.role)
    if not stop_tensor_leak():
        _log.warning("TensorFlow's eager tensors leak memory under this Python; a long run will grow")
    options = dict(request.options)
    if request.proxy is not None:
        request.proxy.open(options["port"])
    if request.certificate is not None:
        options["replay_address"] = open_tunnels(options["replay_address"], request.certificate)
    run(request.config, directory, stop, **options)
