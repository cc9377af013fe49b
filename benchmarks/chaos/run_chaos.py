"""A local run under chaos."""

from pathlib import Path

from rich.console import Console

from actorlearner.config.schema import Config
from actorlearner.errors import EXIT_FINISHED, ConfigurationError, RunError
from actorlearner.local.progress import Progress
from actorlearner.local.supervisor import Supervisor
from actorlearner.local.view import View
from actorlearner.process.cores import collect_actors
from actorlearner.process.stop import Stop
from actorlearner.records.run_directory import RunDirectory, new_run_directory
from benchmarks.chaos.experiment import describe, under_chaos
from benchmarks.chaos.findings import find
from benchmarks.chaos.harm import Harmer
from benchmarks.chaos.link import Links
from benchmarks.chaos.schedule import SERVER, make_schedule
from benchmarks.chaos.verdict import reasons, table
from benchmarks.chaos.watch import Watch

_POLL_INTERVAL_S = 0.25
_STEPS = "chaos"

# A run may take this many durations of its harm, and these seconds more.
_MAX_DURATIONS, _MAX_MORE_S = 3, 300.0


def run_chaos(config: Config, run_dir: str | None, experiment: str, *, duration: int, seed: int) -> int:
    """Trains with all roles on this machine while they are killed, stopped and cut off.

    The harm begins when all roles are ready for the first time, and ends `duration` seconds later at the
    latest; then the run has twice as long and five minutes to finish.

    Args:
      config: the experiment; see `under_chaos` for what is changed in it.
      run_dir: the run directory, without a run; None makes a new one under runs/.
      experiment: names a new run directory.
      duration: of the harm, in seconds.
      seed: decides which role is harmed when.

    Returns:
      The exit code: 0 after a good verdict, or 130 or 143 after a signal, without a verdict.

    Raises:
      ConfigurationError: the configuration cannot work with chaos, or the directory holds a run.
      RunError: the verdict is bad. No process is left, unless that is the reason.
    """
    directory = RunDirectory(Path(run_dir)) if run_dir else new_run_directory(experiment)
    if directory.holds_a_run:
        problem = f"--run_dir: {directory.path} holds a run; allowed for chaos: a new directory"
        raise ConfigurationError([problem])
    steps = directory.path / _STEPS
    config = under_chaos(config, steps, duration)
    stop = Stop()
    stop.install()
    directory.hold()
    directory.prepare(config)
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(f"run directory: {directory.path}", soft_wrap=True)
    console.print(describe(config), soft_wrap=True)
    chaos = _Chaos(config, directory, console, stop)
    chaos.run(duration, seed)
    if stop.requested:
        return stop.exit_code
    findings = find(config, directory, steps, chaos.watch, chaos.harmer, chaos.problems)
    for line in ("", *table(findings)):
        console.print(line, soft_wrap=True)
    if found := reasons(findings):
        raise RunError("the verdict is bad", found)
    return EXIT_FINISHED


class _Chaos:
    """The processes of one run, and the harm done to them.

    Attributes:
      watch: the observations of the processes.
      harmer: the harm done to them.
      problems: the reasons why the run could not continue.
    """

    def __init__(self, config: Config, directory: RunDirectory, console: Console, stop: Stop) -> None:
        """Starts all roles."""
        self._console = console
        self._stop = stop
        self._progress = Progress(config, directory)
        self._links = Links()
        self._supervisor = Supervisor(config, directory, route=self._links.route)
        actors = [f"collect-actor-{i}" for i in range(collect_actors(config.collect))]
        self._groups = [[SERVER], ["learner"], actors, ["eval-actor"]]
        self.watch = Watch(self._supervisor, directory)
        self.harmer = Harmer(self._supervisor, self._links)
        self.problems: list[str] = []

    def run(self, duration_s: float, seed: int) -> None:
        """Blocks until the end of the run; then ends all processes, which takes some seconds."""
        schedule = make_schedule(duration_s, seed, self._groups)
        try:
            with View(self._console, self._progress) as view:
                while not self._supervisor.finished and not self._stop.wait(_POLL_INTERVAL_S):
                    self._poll()
                    if not self.harmer.begun and not self._supervisor.unready:
                        self.harmer.begin(schedule)
                    if self.harmer.elapsed_s > _MAX_DURATIONS * duration_s + _MAX_MORE_S:
                        self.problems.append("the run did not finish in time")
                        break
                    view.update(self._supervisor.unready)
        except RunError as error:
            self.problems.append(str(error))  # Its details are the end of a log, which stays.
        finally:
            self.harmer.end()
            self.watch.end()
            self._supervisor.shut_down(self._stop, lambda line: self._console.print(line, soft_wrap=True))
            self._links.close()
        if not self.watch.saved_at_end:
            self.problems.append("the replay server did not save in time when the run ended")

    def _poll(self) -> None:
        self.watch.poll(self.harmer.killed)
        for line in (*self._supervisor.check(), *self.harmer.check()):
            self._console.print(line, soft_wrap=True)
