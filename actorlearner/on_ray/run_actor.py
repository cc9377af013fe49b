"""The run as a detached Ray actor: local mode's supervision, with collect actors on all nodes.

The run continues without the command that started it. Replay server, learner and eval actor are child
processes of this actor, on the node with the run directory; collect actors are separate Ray actors.
"""

import dataclasses
import os
import tempfile
import threading
import time
import traceback
from pathlib import Path

import ray
from rich.console import Console

from actorlearner.agents.configuration import load_config
from actorlearner.config.addresses import join_address
from actorlearner.config.schema import Config
from actorlearner.errors import EXIT_FAILED, EXIT_FINISHED, EXIT_USAGE, ConfigurationError, RunError
from actorlearner.local.supervisor import Supervisor
from actorlearner.local.train import begin_run, watch_run
from actorlearner.network.certificate import write_certificate
from actorlearner.network.hidden_server import TlsProxy
from actorlearner.network.ports import listen
from actorlearner.network.private_network import PrivateNetwork, RefusedError
from actorlearner.on_ray.collect_actor import CollectSettings
from actorlearner.on_ray.ray_child import RayChild
from actorlearner.process.stop import Stop
from actorlearner.records.run_directory import RunDirectory

_POLL_S = 0.5
_FOLLOWED_S = 30.0
_WIDTH = 1_000  # Lines of the output are not broken: the terminal is elsewhere.


@dataclasses.dataclass(frozen=True)
class RunSettings:
    """The data from which the Ray actor starts or resumes a run.

    Attributes:
      config: the experiment, as YAML.
      run_dir: the run directory, on the node of this actor.
      certificate: the run's certificate and key.
      port: the port at which the replay server accepts TLS; it stays the same when Ray restarts this actor.
      folder: the command's working directory, which may hold the user's modules.
    """

    config: str
    run_dir: str
    certificate: bytes
    port: int
    folder: str


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a run ended: the exit code of the command that follows it, and the problems, if any."""

    exit_code: int
    problems: tuple[str, ...] = ()


class RunActor:
    """The detached Ray actor that supervises a run; commands start it, poll it and stop it."""

    def __init__(self, settings: RunSettings) -> None:
        """Starts or resumes the run on a thread."""
        os.chdir(settings.folder)
        self._settings = settings
        self._directory = RunDirectory(Path(settings.run_dir))
        self._output = self._directory.log("ray")
        self._output.parent.mkdir(parents=True, exist_ok=True)
        self._outcome: Outcome | None = None
        self._stop = Stop()
        self._ended = threading.Event()
        threading.Thread(target=self._run, name="run", daemon=True).start()

    def poll(self, offset: int) -> tuple[bytes, Outcome | None]:
        """Blocks for half a second or until the end; returns the output after an offset, and the outcome."""
        self._ended.wait(_POLL_S)
        outcome = self._outcome
        if not self._output.exists():
            return b"", outcome
        with self._output.open("rb") as file:
            file.seek(offset)
            return file.read(), outcome

    def stop(self, number: int) -> None:
        """Makes the run save and stop; a second SIGINT gives up saving replay."""
        self._stop.receive(number)

    def _run(self) -> None:
        try:
            self._outcome = Outcome(self._train())
        except ConfigurationError as error:
            self._outcome = Outcome(EXIT_USAGE, tuple(error.problems))
        except RunError as error:
            self._outcome = Outcome(EXIT_FAILED, (str(error), *error.details))
        except Exception as error:
            self._outcome = Outcome(EXIT_FAILED, (f"{type(error).__name__}: {error}",))
            traceback.print_exc()
        self._ended.set()
        # Commands that follow the run need time to read the outcome before this actor disappears.
        time.sleep(_FOLLOWED_S)
        ray.kill(ray.get_runtime_context().current_actor)

    def _train(self) -> int:
        with (
            tempfile.TemporaryDirectory(prefix="actorlearner-") as temporary,
            listen(self._settings.port) as listener,
            self._output.open("a", encoding="utf-8") as output,
        ):
            config_file, certificate = Path(temporary) / "experiment.yaml", Path(temporary) / "run.pem"
            config_file.write_text(self._settings.config, encoding="utf-8")
            write_certificate(certificate, self._settings.certificate)
            config = load_config(str(config_file))
            console = Console(file=output, width=_WIDTH, highlight=False, markup=False, emoji=False)
            self._directory.hold()
            progress = begin_run(config, self._directory, console)
            if progress is None:
                return EXIT_FINISHED
            supervisor = self._start(config, console, listener.fileno(), certificate)
            return watch_run(supervisor, progress, self._stop, console)

    def _start(self, config: Config, console: Console, listener: int, certificate: Path) -> Supervisor:
        network, refusal = None, ""
        try:
            network = PrivateNetwork()
        except RefusedError as error:
            refusal = str(error)
        host = ray.util.get_node_ip_address()
        address = join_address(host, self._settings.port)
        console.print(f"network: the replay server is reached by TLS, at {address}")
        run = self._settings
        settings = CollectSettings(run.config, run.certificate, address, run.folder)
        return Supervisor(
            config,
            self._directory,
            network,
            elsewhere=lambda name, index: RayChild(name, index, settings, self._directory),
            proxy=TlsProxy(listener, certificate, refusal),
        )
