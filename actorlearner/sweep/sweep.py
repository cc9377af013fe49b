"""Runs a sweep: opens or continues its Optuna study, runs trials, and writes the results."""

import contextlib
import fcntl
import json
import logging
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.trial import FrozenTrial, TrialState

from actorlearner.config.resolved import canonical, differences
from actorlearner.errors import EXIT_FINISHED, ConfigurationError, RunError, one_line
from actorlearner.process.stop import Stop
from actorlearner.records.formatting import plural
from actorlearner.sweep.results import outcome, table_lines, write_results
from actorlearner.sweep.trial import FAILURE, Objective, StoppedError, SweepSettings

_HEARTBEAT_S = 10
_GRACE_S = 30
"""Seconds without a heartbeat after which a trial counts as dead, and another session resumes it."""

_SETTINGS = "plan"  # As in studies that older versions have begun.
_MAX_FIRST_FAILURES = 3
_WARMUP_SHARE = 0.25


def run_sweep(settings: SweepSettings, directory: Path, storage_url: str | None) -> int:
    """Runs trials until the study has as many as requested, and writes the results after each.

    Args:
      settings: what is searched.
      directory: where the runs and the results are written, made already; its name is the study's.
      storage_url: the study's database, for several machines; None for a file in the directory.

    Returns:
      The exit code.

    Raises:
      ConfigurationError: the study was begun with other settings, or its database cannot be opened.
      RunError: the first trials, or all, failed.
    """
    with _alone(directory):  # Before signals are handled: Ctrl-C ends this wait.
        study = _open(settings, directory, storage_url)
    stop = Stop()
    stop.install()
    print(f"sweep directory: {directory}", flush=True)
    objective = Objective(settings, directory, stop)
    while len(_ended(study)) < settings.trials and not stop.requested:
        trial = _run_trial(study, objective)
        if trial is not None:
            print(outcome(study, trial), flush=True)
            write_results(study, settings, directory)
        _check_first_failures(study, settings.trials)
    _check_first_failures(study, settings.trials)  # All may have ended, and failed, in earlier sessions.
    for line in table_lines(study, settings):
        print(line, flush=True)
    if stop.requested:
        done = f"{len(_ended(study))} of {settings.trials} trials"
        print(f"stopped after {done}; the same command with --sweep_dir continues", flush=True)
        return stop.exit_code
    return EXIT_FINISHED


def _run_trial(study: optuna.Study, objective: Objective) -> FrozenTrial | None:
    """Runs a trial; returns it once it has ended, or None if this or another session resumes it."""
    objective.taken_over = False  # Optuna may raise before it calls the objective.
    try:
        study.optimize(objective, n_trials=1, catch=(StoppedError, ConfigurationError, RunError))
    except Exception:  # Optuna raises several for a trial that has ended already.
        if not objective.taken_over:
            raise
        print(f"trial {objective.number}: another session has taken it over", flush=True)
        return None
    trial = study.trials[objective.number]
    if trial.state is TrialState.FAIL and FAILURE not in trial.user_attrs:
        RetryHeartbeatStaleTrialCallback()(study, trial)
        return None
    return trial


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Waits until no other session of this machine opens the study: Optuna would make its tables twice."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # A file system without locks.
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # Until the descriptor is closed.
        yield
    finally:
        os.close(descriptor)


def _open(settings: SweepSettings, directory: Path, storage_url: str | None) -> optuna.Study:
    """Opens the study, and refuses one of other settings."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    logging.getLogger("alembic").setLevel(logging.ERROR)
    warnings.simplefilter("ignore", ExperimentalWarning)  # Of the heartbeats.
    # Optuna warns of a second value if a restarted learner repeats a train step.
    warnings.filterwarnings("ignore", message="The reported value is ignored")
    url = storage_url or f"sqlite:///{directory.absolute() / 'study.db'}"
    warmup = int(_WARMUP_SHARE * settings.config.learn.train_steps)
    try:
        storage = RDBStorage(
            url,
            heartbeat_interval=_HEARTBEAT_S,
            grace_period=_GRACE_S,
            heartbeat_stale_trial_callback=RetryHeartbeatStaleTrialCallback(),
        )
        study = optuna.create_study(
            storage=storage,
            study_name=os.path.basename(os.path.abspath(directory)),  # `directory.name` of `.` is empty.
            direction="maximize",
            load_if_exists=True,
            # Evaluations of the first quarter are too noisy to prune by.
            pruner=optuna.pruners.MedianPruner(n_warmup_steps=warmup),
        )
    except Exception as error:  # Optuna, SQLAlchemy and the database drivers have no common error class.
        wrong = _without_password(f"--storage: {url!r} cannot be opened ({one_line(error)})")
        raise ConfigurationError([f"{wrong}; allowed: a database URL of SQLAlchemy, see Optuna"]) from error
    _check_settings(study, settings)
    return study


def _without_password(line: str) -> str:
    return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", line)


def _check_settings(study: optuna.Study, settings: SweepSettings) -> None:
    """Records the settings in a new study; raises a ConfigurationError if an old one has others."""
    space = {each.name: [each.choices, each.low, each.high, each.log] for each in settings.space}
    ours: dict[str, Any] = {
        "config": canonical(settings.config),
        "space": json.dumps(space),
        "seeds": settings.seeds,
    }
    theirs = study.user_attrs.get(_SETTINGS)
    if theirs is None:
        study.set_user_attr(_SETTINGS, ours)
        return
    problems = [f"--config: {line}" for line in differences(ours["config"], theirs["config"])]
    for name in ("space", "seeds"):
        if ours[name] != theirs[name]:
            problems.append(f"--{name}: {ours[name]} here, {theirs[name]} there")
    if problems:
        allowed = "the same as before, or another --sweep_dir"
        raise ConfigurationError(
            [f"{line} (study {study.study_name}); allowed: {allowed}" for line in problems]
        )


def _ended(study: optuna.Study) -> list[FrozenTrial]:
    """Returns the complete, pruned and failed trials; stopped ones are resumed as new trials."""
    trials = study.get_trials(deepcopy=False)
    return [
        trial
        for trial in trials
        if trial.state in (TrialState.COMPLETE, TrialState.PRUNED) or FAILURE in trial.user_attrs
    ]


def _check_first_failures(study: optuna.Study, trials: int) -> None:
    """Raises a RunError if the first three of the sweep's trials (or all, if fewer) have failed."""
    ended = _ended(study)
    failures = [trial.user_attrs[FAILURE] for trial in ended if FAILURE in trial.user_attrs]
    if len(failures) >= min(trials, _MAX_FIRST_FAILURES) and len(failures) == len(ended):
        raise RunError(f"the first {plural(len(failures), 'trial')} failed; the last one: {failures[-1]}")
