"""One trial of a sweep: a run of each seed, watched while it trains."""

import dataclasses
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import RetryHeartbeatStaleTrialCallback
from optuna.trial import FrozenTrial, TrialState

from actorlearner.agents.configuration import load_config
from actorlearner.api import Run
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError, RunError, one_line
from actorlearner.local.local_command import LocalCommand
from actorlearner.process.stop import Stop
from actorlearner.records.formatting import return_text
from actorlearner.records.lines import Tail, read_objects
from actorlearner.records.run_directory import RunDirectory
from actorlearner.sweep.space import Parameter

SCORED_EVALUATIONS = 3
"""A run's score is the mean AverageReturn of this many last evaluations."""

FAILURE = "failure"
"""The attribute with the error of a failed trial. Stopped trials, which Optuna also calls failed, lack it."""

_POLL_INTERVAL_S = 0.5


class StoppedError(Exception):
    """The sweep was stopped in the middle of a trial, whose runs can be resumed."""


@dataclasses.dataclass(frozen=True)
class SweepSettings:
    """The settings of a sweep.

    Attributes:
      config_file: the configuration that every trial changes.
      overrides: of all trials, as in `--set`.
      config: the configuration with these overrides.
      space: what is searched.
      trials: how many are run, together with those of earlier sessions and of other machines.
      seeds: the runs of a trial, with seeds from `config.seed` on.
    """

    config_file: str
    overrides: tuple[str, ...]
    config: Config
    space: tuple[Parameter, ...]
    trials: int
    seeds: int


class Objective:
    """The objective function of the study: runs a trial with the values that Optuna draws.

    Attributes:
      number: of the newest trial.
      taken_over: whether another session ended that trial meanwhile, because it had no heartbeat for a while.
    """

    def __init__(self, settings: SweepSettings, directory: Path, stop: Stop) -> None:
        """Runs nothing yet. A requested `stop` ends the trial; the next session resumes it."""
        self._settings = settings
        self._directory = directory
        self._stop = stop
        self.number = 0
        self.taken_over = False

    def __call__(self, trial: optuna.Trial) -> float:
        """Trains with each seed, one after the other; blocks until the trial has ended.

        Returns:
          The mean over seeds of their scores.

        Raises:
          TrialPruned: its returns are below the median of earlier trials at the same train step.
          StoppedError: the sweep is to stop.
          ConfigurationError: the drawn values cannot work together.
          RunError: a run failed.
        """
        self.number = trial.number
        try:
            return self._mean_score(trial)
        except (ConfigurationError, RunError) as error:
            trial.set_user_attr(FAILURE, one_line(error))
            raise
        finally:
            self.taken_over = _frozen(trial).state is not TrialState.RUNNING

    def _mean_score(self, trial: optuna.Trial) -> float:
        drawn: list[str] = []
        for parameter in self._settings.space:
            drawn += parameter.overrides(parameter.suggest(trial))
        print(f"trial {trial.number}: {', '.join(drawn)}", flush=True)
        overrides = [*self._settings.overrides, *drawn]
        config = load_config(self._settings.config_file, overrides)
        folder = self._directory / "trials" / str(_first_number(trial))
        scores = []
        for index in range(self._settings.seeds):
            seed = config.seed + index
            run = RunDirectory(folder / f"seed-{seed}")
            steps_before = index * config.learn.train_steps
            try:
                self._train(trial, run, [*overrides, f"seed={seed}"], steps_before)
            except (optuna.TrialPruned, ConfigurationError, RunError):
                # A stopped trial keeps its replay, because it is resumed; these trials are not.
                _discard_replay(run)
                raise
            ended = Run(run.path, config)
            if not ended.finished:
                raise RunError(f"the run in {run.path} was stopped before its end")
            _discard_replay(run)
            scores.append(_score(ended))
        return sum(scores) / len(scores)

    def _train(self, trial: optuna.Trial, run: RunDirectory, overrides: list[str], steps_before: int) -> None:
        """Trains or resumes one run, and reports its evaluations to Optuna."""
        arguments = ["--config", self._settings.config_file, "--run_dir", str(run.path), "--set", *overrides]
        process = LocalCommand(*arguments, "--quiet")
        evaluations = Tail(run.metrics("eval"), from_start=True)
        saves = True
        try:
            while process.running and not self._stop.wait(_POLL_INTERVAL_S):
                self._report_evaluations(trial, run, evaluations, steps_before)
        except optuna.TrialPruned:
            saves = False  # Its experience would be removed.
            raise
        finally:
            self._end(process, saves=saves)
        if self._stop.requested:
            raise StoppedError
        self._report_evaluations(trial, run, evaluations, steps_before)

    def _end(self, process: LocalCommand, *, saves: bool) -> None:
        """Stops a run and blocks until its process has ended.

        The run saves its state first, unless `saves` is False or the user presses Ctrl-C again.
        """
        interrupts, gave_up = self._stop.interrupts, False
        if process.running:
            process.interrupt()
        while process.running:
            time.sleep(_POLL_INTERVAL_S)
            if not saves or self._stop.interrupts > interrupts:
                interrupts, gave_up = self._stop.interrupts, True
                process.interrupt()
        try:
            process.finish()
        except RunError:
            if not gave_up:  # The second interrupt may hit the exiting process and change its exit code.
                raise

    def _report_evaluations(
        self, trial: optuna.Trial, run: RunDirectory, evaluations: Tail, steps_before: int
    ) -> None:
        for record in _trained(read_objects(run.metrics("eval"), evaluations.lines())):
            train_step, mean = record["train_step"], float(record["average_return"])
            which = f"trial {trial.number}: {run.path.name}: train step {train_step:,}"
            print(f"{which}: AverageReturn {return_text(mean)}", flush=True)
            trial.report(mean, steps_before + train_step)
            if trial.should_prune():
                raise optuna.TrialPruned(f"at train step {train_step:,} of {run.path.name}")


def _first_number(trial: optuna.Trial) -> int:
    """Returns the number of the trial, or of the stopped trial that it resumes."""
    first = RetryHeartbeatStaleTrialCallback.retried_trial_number(_frozen(trial))
    return trial.number if first is None else first


def _frozen(trial: optuna.Trial) -> FrozenTrial:
    """Returns the trial as the study has it now."""
    return trial.study.get_trials(deepcopy=False)[trial.number]


def _trained(records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Returns the evaluations after train step 0: untrained policies differ only by chance."""
    return (record for record in records if record["train_step"] > 0)


def _score(run: Run) -> float:
    returns = [float(record["average_return"]) for record in _trained(run.evaluations())]
    last = returns[-SCORED_EVALUATIONS:]
    return sum(last) / len(last)


def _discard_replay(run: RunDirectory) -> None:
    """Removes the experience of a run that is not resumed: of many trials it would fill the disk."""
    shutil.rmtree(run.replay_checkpoints, ignore_errors=True)
