"""The Python API for training: runs as objects.

    import actorlearner

    config = actorlearner.load_config("sac_pendulum", ["learn.train_steps=20000"])
    run = actorlearner.train(config)
    policy = run.best_policy()

Training runs in separate processes, as with `actorlearner local`: a failed run does not affect the process
that calls `train`, such as a notebook's kernel.
"""

import dataclasses
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from actorlearner.agents.configuration import load_config as _load_config
from actorlearner.callbacks import Callback
from actorlearner.config.resolved import to_yaml
from actorlearner.config.schema import Config
from actorlearner.environments.checks import environment_problems
from actorlearner.errors import ConfigurationError
from actorlearner.local.local_command import LocalCommand
from actorlearner.records.metrics import read_records, without_rolled_back
from actorlearner.records.run_directory import RunDirectory, new_run_directory
from actorlearner.replay.checks import replay_problems

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from actorlearner.acting.saved_policy import Policy

__all__ = ["Run", "load_config", "resume", "train"]


@dataclasses.dataclass(frozen=True)
class Run:
    """A run in its run directory, whether it has finished, was stopped, or is running in another process.

    Attributes:
      path: the run directory.
      config: the run's configuration.
    """

    path: Path
    config: Config

    @property
    def finished(self) -> bool:
        """Whether the learner's last train step was evaluated; if evaluation is off, whether it was taken."""
        records = self.metrics("learner") if self.config.evaluate.interval is None else self.evaluations()
        return bool(records) and records[-1]["train_step"] >= self.config.learn.train_steps

    def evaluations(self) -> list[dict[str, Any]]:
        """Returns the evaluations of the greedy policy: `train_step`, `average_return`, `returns`, ...

        Those of train steps that were rolled back and taken again are left out; `metrics("eval")` has them.
        """
        return without_rolled_back(self.metrics("eval"))

    def metrics(self, role: str) -> list[dict[str, Any]]:
        """Returns the records of `learner`, `collect-0`, `eval` or `replay` in order; none without a file."""
        return read_records(RunDirectory(self.path).metrics(role))

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Draws returns, throughput, staleness and samples per insert.

        Args:
          path: a PNG or SVG file that is written as well.

        Raises:
          ConfigurationError: `path` ends neither in .png nor in .svg.
          RunError: there is nothing to draw yet, or the file cannot be written.
        """
        from actorlearner.inspect.plot.figure import make_figure
        from actorlearner.inspect.plot.write_plot import drawable_runs, write

        figure = make_figure(drawable_runs([(RunDirectory(self.path), self.config)], lambda line: None))
        if path is not None:
            write(figure, Path(path))
        return figure

    def report(self, path: str | Path | None = None) -> Path:
        """Writes a page of the run: curves, rates, incidents, configuration and a video of the best policy.

        Args:
          path: the HTML file; None for report.html in the run directory.

        Returns:
          The file. Filming takes seconds, unless there is a video already.
        """
        from actorlearner.inspect.report.write_report import run_report

        page = Path(path) if path is not None else self.path / "report.html"
        run_report([(RunDirectory(self.path), self.config)], page)
        return page

    def best_policy(self) -> "Policy":
        """Loads the policy with the best evaluation, or the newest greedy policy if evaluation is off.

        Raises:
          ConfigurationError: no policy is saved yet.
        """
        from actorlearner.acting.saved_policy import load_policy

        return load_policy(self.path)


def load_config(name_or_path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Loads and checks a configuration.

    Args:
      name_or_path: a YAML file, or the name of a shipped configuration such as sac_pendulum.
      overrides: `section.key=value` each, as with `--set`.

    Raises:
      ConfigurationError: with all problems, one line each.
    """
    return _load_config(str(name_or_path), overrides, (replay_problems, environment_problems))


def train(
    config: Config | str | Path,
    run_dir: str | Path | None = None,
    callbacks: Sequence[str | type[Callback]] = (),
) -> Run:
    """Trains on this machine, and prints the run's progress as lines. Blocks until the run ends.

    KeyboardInterrupt (Ctrl-C, or a notebook's stop button) saves and stops the run: `train` then returns, and
    `resume` continues the run. A second interrupt skips the saving of replay.

    Args:
      config: from `load_config`, or what `load_config` takes.
      run_dir: the run directory; a run that it holds is resumed. None makes a new one under runs/.
      callbacks: further callback classes, or their names as `module:Class`. Roles are processes of their own,
        so the classes have to be importable: a class that was defined in a notebook is not.

    Raises:
      ConfigurationError: with every problem, one line each; nothing was started.
      RunError: the run failed; what was saved can be resumed.
    """
    if not isinstance(config, Config):
        config = load_config(config)
    config = dataclasses.replace(config, callbacks=[*config.callbacks, *map(_callback_name, callbacks)])
    directory = new_run_directory(_name(config)) if run_dir is None else RunDirectory(Path(run_dir))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.yaml"
        file.write_text(to_yaml(config), encoding="utf-8")
        _run_local(directory, file)
    return Run(directory.path, config)


def resume(run_dir: str | Path) -> Run:
    """Resumes a run as it was configured; see `train`. A run that has finished is returned at once."""
    directory = RunDirectory(Path(run_dir))
    if not directory.holds_a_run:
        raise ConfigurationError([f"run_dir: {str(run_dir)!r} holds no run; allowed: the directory of a run"])
    return train(_load_config(str(directory.config)), directory.path)


def _name(config: Config) -> str:
    name = config.environment.name or config.environment.suite
    return re.sub(r"[^\w.-]+", "-", f"{config.agent.name}_{name}")


def _callback_name(callback: str | type[Callback]) -> str:
    if isinstance(callback, str):
        return callback
    if callback.__module__ == "__main__":
        problem = f"callbacks: {callback.__name__} is defined in this script or notebook, and the roles' "
        raise ConfigurationError([f"{problem}processes cannot import it; allowed: a class from a module"])
    return f"{callback.__module__}:{callback.__qualname__}"


def _run_local(directory: RunDirectory, config: Path) -> None:
    """Runs `actorlearner local` as a child process, prints its lines, and raises what it reports."""
    process = LocalCommand("--config", str(config), "--run_dir", str(directory.path), piped=True)
    assert process.stdout is not None
    while True:
        try:
            for line in process.stdout:
                print(line, end="", flush=True)
            process.finish()
            return
        except KeyboardInterrupt:
            process.interrupt()
        except ConfigurationError as error:
            directory.discard()
            # The file is temporary, and the user does not know it.
            source = re.compile(rf" \({re.escape(str(config))}(:[0-9]+)?\)")
            raise ConfigurationError([source.sub("", line) for line in error.problems]) from None
