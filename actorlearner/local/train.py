"""Local mode: one command that trains."""

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from actorlearner.config.schema import Config
from actorlearner.errors import EXIT_FINISHED, ConfigurationError, RunError
from actorlearner.inspect.bottleneck.verdict import find_bottlenecks
from actorlearner.inspect.status.run_status import run_waits
from actorlearner.local.networks import choose_network
from actorlearner.local.progress import Progress
from actorlearner.local.resume import forget_after, look
from actorlearner.local.summary import summary_lines
from actorlearner.local.supervisor import Supervisor
from actorlearner.local.view import View
from actorlearner.process.cores import describe
from actorlearner.process.stop import Stop
from actorlearner.process.verbosity import Verbosity
from actorlearner.records.disk import make_output_last
from actorlearner.records.events import FAILED, RUN_BEGAN, RUN_ENDED, RUN_RESUMED
from actorlearner.records.metrics import newest_of_each
from actorlearner.records.run_directory import RunDirectory, new_run_directory
from actorlearner.records.run_files import RunFiles
from actorlearner.records.tail import Tail

_LOOK_INTERVAL_S = 0.25


def run_local(
    config: Config,
    run_dir: str | None,
    experiment: str,
    network: str,
    verbosity: Verbosity = Verbosity.NORMAL,
    metrics: tuple[str, int] | None = None,
) -> int:
    """Trains with all roles on this machine; returns the exit code.

    A run that the directory holds is resumed, unless it has finished.

    Args:
      config: the experiment.
      run_dir: the run directory; None makes a new one under runs/.
      experiment: names a new run directory.
      network: see `choose_network`.
      verbosity: how much is said.
      metrics: address and port where Prometheus may scrape those of all roles; None for nowhere.

    Raises:
      ConfigurationError: the run directory holds a run of another configuration, another process runs there,
        or a role refused the configuration.
      RunError: a role failed; no process is left.
    """
    stop = Stop()
    stop.install()
    make_output_last()
    directory = RunDirectory(Path(run_dir)) if run_dir else new_run_directory(experiment)
    directory.hold()
    if metrics is not None:
        _serve_metrics(metrics, directory)
    console = Console(highlight=False, markup=False, emoji=False, quiet=verbosity is Verbosity.QUIET)
    resumes = directory.holds_a_run
    directory.prepare(config)
    console.print(f"run directory: {directory.path}", soft_wrap=True)
    progress = Progress(config, directory)
    if resumes:
        if not _resume(config, directory, console):
            return EXIT_FINISHED
        progress.skip_earlier()
    console.print(describe(config.collect), soft_wrap=True)
    private_network, line = choose_network(network)
    console.print(line, soft_wrap=True)
    if private_network is not None and config.callbacks:
        console.print(
            "callbacks: they reach nothing outside this run; --network host lets them", soft_wrap=True
        )
    supervisor = Supervisor(config, directory, private_network)
    supervisor.events.record(RUN_RESUMED if resumes else RUN_BEGAN)
    logs = {}
    if verbosity is Verbosity.VERBOSE:
        logs = {name: Tail(directory.log(name)) for name in supervisor.names}
    try:
        _watch(supervisor, progress, console, logs, stop)
    except ConfigurationError:
        if not supervisor.any_was_ready:
            directory.discard()
        raise
    except RunError as error:
        supervisor.events.record(FAILED, str(error))
        raise
    progress.update()
    saved = look(directory, check=False)
    # A learner that was killed, or that waited for data, has saved later than it recorded.
    train_step = max(progress.train_step, saved.train_step)
    how = "finished" if supervisor.finished else "stopped"
    supervisor.events.record(RUN_ENDED, f"{how} at train step {train_step:,}")
    if not supervisor.finished:
        console.print(
            f"stopped at train step {train_step:,}; saved: train step {saved.train_step:,}, with "
            f"{saved.transitions:,} transitions in replay",
            soft_wrap=True,
        )
    bottlenecks = find_bottlenecks(run_waits(RunFiles([directory])), config.replay.updates_per_env_step)
    for line in summary_lines(progress, directory, supervisor.start_ups, bottlenecks):
        console.print(line, soft_wrap=True)
    return EXIT_FINISHED if supervisor.finished else stop.exit_code


def _serve_metrics(address: tuple[str, int], directory: RunDirectory) -> None:
    from actorlearner.records.prometheus import serve_metrics

    try:
        serve_metrics(address, lambda: newest_of_each(directory.metrics("learner").parent))
    except RunError:
        directory.discard()
        raise


def _watch(
    supervisor: Supervisor, progress: Progress, console: Console, logs: Mapping[str, Tail], stop: Stop
) -> None:
    """Shows how the run goes until it has finished, or a stop; then no process is left, whatever happens."""
    trouble = Console(highlight=False, markup=False, emoji=False, stderr=True) if console.quiet else console
    try:
        with View(console, progress) as view:
            while not supervisor.finished and not stop.wait(_LOOK_INTERVAL_S):
                _show_logs(logs, console)
                for line in supervisor.check():
                    trouble.print(line, soft_wrap=True)
                view.update(supervisor.unready)
    finally:
        supervisor.shut_down(stop, lambda line: trouble.print(line, soft_wrap=True))
        _show_logs(logs, console)


def _show_logs(logs: Mapping[str, Tail], console: Console) -> None:
    for name, log in logs.items():
        for line in log.lines():
            console.print(f"{name} | {line}", soft_wrap=True)


def _resume(config: Config, directory: RunDirectory, console: Console) -> bool:
    """Says where the run goes on; returns False if it has nothing more to do."""
    resumed = look(directory)
    if resumed.finished(config):
        console.print(
            f"this run has finished at train step {resumed.train_step:,}; raise learn.train_steps to go on"
        )
        return False
    forget_after(directory, resumed.train_step)
    console.print(
        f"resuming at train step {resumed.train_step:,}, with {resumed.transitions:,} transitions in replay"
    )
    return True
