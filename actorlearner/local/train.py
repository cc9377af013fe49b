"""Local mode: one command that trains with all roles on this machine."""

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from actorlearner.config.schema import Config
from actorlearner.errors import EXIT_FINISHED, ConfigurationError, RunError
from actorlearner.local.progress import Progress
from actorlearner.local.resume import read_state, roll_back
from actorlearner.local.supervisor import Supervisor
from actorlearner.local.view import View, print_evaluations, summary_lines
from actorlearner.network.private_network import choose_network
from actorlearner.process.cores import describe
from actorlearner.process.role_process import Verbosity
from actorlearner.process.stop import Stop
from actorlearner.records.disk import make_output_robust
from actorlearner.records.events import FAILED, RUN_BEGAN, RUN_ENDED, RUN_RESUMED
from actorlearner.records.lines import Tail
from actorlearner.records.metrics import newest_of_each
from actorlearner.records.run_directory import RunDirectory, new_run_directory

_POLL_INTERVAL_S = 0.25


def run_local(
    config: Config,
    run_dir: str | None,
    experiment: str,
    network: str,
    verbosity: Verbosity = Verbosity.NORMAL,
    metrics: tuple[str, int] | None = None,
) -> int:
    """Trains with all roles on this machine; returns the exit code.

    Resumes the run that the run directory holds, unless it has finished.

    Args:
      config: the experiment.
      run_dir: the run directory; None makes a new one under runs/.
      experiment: names a new run directory.
      network: see `choose_network`.
      verbosity: how much is printed.
      metrics: address and port where Prometheus may scrape the metrics of all roles; None for no such port.

    Raises:
      ConfigurationError: the run directory holds a run of another configuration, another process runs there,
        or a role refused the configuration.
      RunError: a role failed; no process is left.
    """
    stop = Stop()
    stop.install()
    make_output_robust()
    directory = RunDirectory(Path(run_dir)) if run_dir else new_run_directory(experiment)
    directory.hold()
    if metrics is not None:
        _serve_metrics(metrics, directory)

    quiet = verbosity is Verbosity.QUIET
    if quiet and not run_dir:  # Nothing else says where the run is.
        print(f"run directory: {directory.path}", flush=True)
    console = _console(quiet=quiet)
    progress = begin_run(config, directory, console)
    if progress is None:
        return EXIT_FINISHED
    private_network, line = choose_network(network)
    _print(console, line)
    if private_network is not None and config.callbacks:
        _print(console, "callbacks: no network access outside this run; --network host enables it")
    supervisor = Supervisor(config, directory, private_network)
    return watch_run(supervisor, progress, stop, console, verbose=verbosity is Verbosity.VERBOSE)


def begin_run(config: Config, directory: RunDirectory, console: Console) -> Progress | None:
    """Prepares a run directory for the start of the roles; resumes the run that it holds.

    Args:
      config: the experiment.
      directory: the run directory; this process must hold its lock.
      console: prints the lines for the user.

    Returns:
      The progress of the run; None if it has finished.

    Raises:
      ConfigurationError: the run directory holds a run of another configuration.
    """
    directory.prepare(config)
    _print(console, f"run directory: {directory.path}")
    if not directory.is_new and not _resume(config, directory, console):
        return None
    progress = Progress(config, directory)
    _print(console, describe(config.collect))
    return progress


def watch_run(
    supervisor: Supervisor, progress: Progress, stop: Stop, console: Console, *, verbose: bool = False
) -> int:
    """Watches the roles until the run has finished or a stop is requested; returns the exit code.

    Args:
      supervisor: of the roles, which have been started.
      progress: from `begin_run`.
      stop: ends the run, after it has saved.
      console: prints the lines for the user.
      verbose: whether all log lines are printed as well.

    Raises:
      ConfigurationError: a role refused the configuration.
      RunError: a role failed; no process is left.
    """
    directory = progress.directory
    supervisor.events.record(RUN_BEGAN if directory.is_new else RUN_RESUMED)
    logs = {name: Tail(directory.log(name)) for name in supervisor.names} if verbose else {}
    try:
        _watch(supervisor, progress, console, logs, stop)
    except ConfigurationError:
        directory.discard()
        raise
    except RunError as error:
        supervisor.events.record(FAILED, str(error))
        raise
    _report_end(supervisor, progress, console)
    return EXIT_FINISHED if supervisor.finished else stop.exit_code


def _console(*, quiet: bool = False, stderr: bool = False) -> Console:
    return Console(highlight=False, markup=False, emoji=False, quiet=quiet, stderr=stderr)


def _print(console: Console, line: str) -> None:
    console.print(line, soft_wrap=True)


def _serve_metrics(address: tuple[str, int], directory: RunDirectory) -> None:
    from actorlearner.records.prometheus import serve_metrics

    try:
        serve_metrics(address, lambda: newest_of_each(directory.metrics("learner").parent))
    except RunError:
        directory.discard()
        raise


def _resume(config: Config, directory: RunDirectory, console: Console) -> bool:
    """Rolls the directory back to the newest checkpoint; returns False if the run has finished."""
    saved = read_state(directory)
    if saved.finished(config):
        _print(
            console,
            f"this run has finished at train step {saved.train_step:,}; raise learn.train_steps to go on",
        )
        return False
    roll_back(directory, saved.train_step)
    _print(
        console,
        f"resuming at train step {saved.train_step:,}, with {saved.transitions:,} transitions in replay",
    )
    return True


def _watch(
    supervisor: Supervisor, progress: Progress, console: Console, logs: Mapping[str, Tail], stop: Stop
) -> None:
    """Shows the run until it has finished or a stop is requested; leaves no process behind."""
    incidents = _console(stderr=True) if console.quiet else console
    try:
        with View(console, progress) as view:
            while not supervisor.finished and not stop.wait(_POLL_INTERVAL_S):
                _print_logs(logs, console)
                for line in supervisor.check():
                    _print(incidents, line)
                view.update(supervisor.unready)
    finally:
        supervisor.shut_down(stop, lambda line: _print(incidents, line))
        _print_logs(logs, console)


def _print_logs(logs: Mapping[str, Tail], console: Console) -> None:
    for name, log in logs.items():
        for line in log.lines():
            _print(console, f"{name} | {line}")


def _report_end(supervisor: Supervisor, progress: Progress, console: Console) -> None:
    """Records the end of the run; prints its last evaluations and its summary."""
    progress.update()
    print_evaluations(console, progress)  # Those that ended after the last poll.
    saved = read_state(progress.directory, check=False)
    # A learner that was killed, or that waited for data, may have saved later than its last record.
    train_step = max(progress.train_step, saved.train_step)
    outcome = "finished" if supervisor.finished else "stopped"
    supervisor.events.record(RUN_ENDED, f"{outcome} at train step {train_step:,}")
    if not supervisor.finished:
        _print(
            console,
            f"stopped at train step {train_step:,}; saved: train step {saved.train_step:,}, with "
            f"{saved.transitions:,} transitions in replay; resume it with --run_dir "
            f"{progress.directory.path}",
        )
    for line in summary_lines(progress, supervisor.start_ups):
        _print(console, line)
