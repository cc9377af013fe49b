"""The command that starts a run on Ray, or attaches to it, and shows it."""

import logging
import math
import os
import signal
import socket
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import ActorUnavailableError, RayActorError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from actorlearner.config.addresses import split_address
from actorlearner.config.resolved import to_yaml
from actorlearner.config.schema import Config
from actorlearner.errors import EXIT_USAGE, ConfigurationError, RunError
from actorlearner.network.certificate import make_certificate
from actorlearner.network.ports import free_port
from actorlearner.on_ray.run_actor import Outcome, RunActor, RunSettings
from actorlearner.process.stop import Stop
from actorlearner.records.disk import make_output_robust
from actorlearner.records.run_directory import RunDirectory, new_run_directory

_NAMESPACE = "actorlearner"
_CONCURRENT_CALLS = 4  # Some commands may follow one run, and one stops it.
_OWN_CORES = 2  # With LOCAL: cores in addition to one for each collect actor.
_RETRY_S = 1.0
_CONNECT_S = 5.0
_REPORT_AFTER_S = 10.0
_NAME_FILE = "ray-actor"
LOCAL = "local"


def run_on_ray(config: Config, run_dir: str | None, experiment: str, address: str) -> int:
    """Starts a run on a Ray cluster, or attaches to it, and prints its progress; returns the exit code.

    SIGINT and SIGTERM make the run save and stop. If this process dies in another way, the run continues,
    unless this process started Ray itself (LOCAL).

    Args:
      config: the experiment; `collect.actors` is set.
      run_dir: the run directory, on this node; None makes a new one under runs/.
      experiment: names a new run directory.
      address: of the cluster, as `ray.init` takes it; LOCAL for a Ray of this machine alone.

    Raises:
      ConfigurationError: the configuration was refused, or there is no cluster at the address.
      RunError: the run failed.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # A closed terminal stops neither the run nor this command.
    stop = Stop()
    make_output_robust()
    with _connection(address, config.collect.actors or 1):
        stop.install()  # Only now: Ctrl-C ends the wait for a connection, and Ray replaces handlers.
        directory = RunDirectory(Path(run_dir)) if run_dir else new_run_directory(experiment)
        log = directory.log("ray")
        offset = log.stat().st_size if log.exists() else 0
        found = _find(config, directory)
        actor = _start(config, directory) if found is None else found
        if not _answers(actor, stop):
            if found is None:
                ray.kill(actor)
            else:
                actor.stop.remote(int(stop.number))  # Takes effect once Ray has started the actor.
            return stop.exit_code
        outcome = _follow(actor, offset, stop)
        ray.kill(actor)
    if outcome.exit_code == EXIT_USAGE:
        directory.discard()  # This process made it, so the run's actor does not.
        raise ConfigurationError(outcome.problems)
    if outcome.problems:
        raise RunError(outcome.problems[0], outcome.problems[1:])
    return outcome.exit_code


@contextmanager
def _connection(address: str, actors: int) -> Iterator[None]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    own: dict[str, Any] = {"num_cpus": actors + _OWN_CORES, "include_dashboard": False}
    try:
        _probe(address)
        ray.init(
            address,
            namespace=_NAMESPACE,
            log_to_driver=False,
            logging_level=logging.ERROR,
            **(own if address == LOCAL else {}),
        )
    except (OSError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        allowed = "auto or the HOST:PORT of a Ray cluster with this node; without it, a Ray of this machine"
        problem = f"--address: {address!r} cannot be used ({reason})"
        raise ConfigurationError([f"{problem}; allowed: {allowed}"]) from None
    try:
        yield
    finally:
        ray.shutdown()


def _probe(address: str) -> None:
    """Connects to HOST:PORT, because `ray.init` waits for minutes; no-op for other forms of an address.

    Raises:
      OSError: nothing answers within _CONNECT_S.
    """
    try:
        host_and_port = split_address(address)
    except ValueError:
        return
    socket.create_connection(host_and_port, _CONNECT_S).close()


def _find(config: Config, directory: RunDirectory) -> Any | None:
    """Returns the Ray actor of the directory's run; None if it was never started, or has ended."""
    try:
        actor = ray.get_actor((directory.heartbeats / _NAME_FILE).read_text())
    except (FileNotFoundError, ValueError):
        return None
    if directory.holds_a_run:  # Else the actor still waits for its GPUs.
        directory.check_same(config)
    print(f"attached to the run in {directory.path}", flush=True)
    return actor


def _start(config: Config, directory: RunDirectory) -> Any:
    """Starts or resumes the directory's run on this node, with all of its GPUs; returns its Ray actor."""
    name = f"run-{uuid.uuid4().hex[:12]}"
    directory.make()
    directory.heartbeats.mkdir(exist_ok=True)
    (directory.heartbeats / _NAME_FILE).write_text(name)
    node = ray.get_runtime_context().get_node_id()
    gpus = next(each["Resources"].get("GPU", 0) for each in ray.nodes() if each["NodeID"] == node)
    options = ray.remote(RunActor).options(
        name=name,
        lifetime="detached",
        max_restarts=-1,
        max_concurrency=_CONCURRENT_CALLS,
        num_cpus=0,
        num_gpus=gpus,
        scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
    )
    run_dir, certificate, port = str(directory.path), make_certificate(), free_port()
    return options.remote(RunSettings(to_yaml(config), run_dir, certificate, port, os.getcwd()))


def _answers(actor: Any, stop: Stop) -> bool:
    """Waits until Ray has started the run's actor; returns False if a stop is requested first."""
    answer = actor.poll.remote(0)
    report_at = time.monotonic() + _REPORT_AFTER_S
    while not ray.wait([answer], timeout=_RETRY_S)[0]:
        if stop.requested:
            return False
        if time.monotonic() >= report_at:
            print("waiting until Ray can start the run on this node, with all of its GPUs", flush=True)
            report_at = math.inf
    return True


def _follow(actor: Any, offset: int, stop: Stop) -> Outcome:
    """Prints the output of the run until it ends; passes on requests to stop."""
    passed = 0
    while True:
        interrupts = stop.interrupts
        try:
            # Waits for each stop: Ray drops a call to an actor that it starts again.
            if stop.requested and passed == 0:
                ray.get(actor.stop.remote(int(stop.number)))
                passed = max(1, interrupts)
            elif interrupts > passed:
                ray.get(actor.stop.remote(int(signal.SIGINT)))
                passed = interrupts
            text, outcome = ray.get(actor.poll.remote(offset))
        except ActorUnavailableError:
            print("the Ray actor of the run does not answer; Ray starts it again if it died", flush=True)
            time.sleep(_RETRY_S)
            continue
        except RayActorError as error:
            raise RunError("the Ray actor of the run is gone; the same command resumes the run") from error
        sys.stdout.write(text.decode("utf-8", "replace"))
        sys.stdout.flush()
        offset += len(text)
        if outcome is not None:
            return outcome
