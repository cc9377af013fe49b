"""Sweeps of scripted runs: early ends of trials, resuming after a stop, and refusals."""

import json
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import optuna
import pytest
from optuna.storages import RetryHeartbeatStaleTrialCallback
from optuna.trial import TrialState

from actorlearner.agents.configuration import load_config
from actorlearner.errors import ConfigurationError, RunError
from actorlearner.process.stop import Stop
from actorlearner.records.run_directory import RunDirectory
from actorlearner.sweep import results, sweep, trial
from actorlearner.sweep.space import Parameter
from actorlearner.sweep.trial import SweepSettings

_TRAIN_STEPS = 400
_GAMMA = Parameter("agent.gamma", ("agent.gamma",), "space.yaml:1", low=0.5, high=0.9)

Returns = Callable[[float, int], Sequence[float]]
"""The returns that a run evaluates to, given its gamma and its seed; RunError for a run that fails."""


class ScriptedRun:
    """In the place of a LocalCommand: the run has been evaluated when it is first polled, and ends soon.

    Attributes:
      interrupts: how often it was interrupted; it ends at once at the second time.
    """

    def __init__(
        self, returns: Returns, started: list[Path], while_saving: Callable[[], None], *arguments: str
    ) -> None:
        run = RunDirectory(Path(arguments[arguments.index("--run_dir") + 1]))
        overrides = dict(each.split("=") for each in arguments if "=" in each)
        started.append(run.path)
        self._polls_left = 5
        self._while_saving = while_saving
        self.interrupts = 0
        self._error: Exception | None = None
        evaluations = run.metrics("eval")
        evaluations.parent.mkdir(parents=True, exist_ok=True)
        run.replay_checkpoints.mkdir(parents=True, exist_ok=True)
        try:
            means = returns(float(overrides["agent.gamma"]), int(overrides["seed"]))
        except RunError as error:
            self._error, means = error, ()
        records = [{"train_step": 100 * i, "average_return": mean} for i, mean in enumerate(means)]
        evaluations.write_text("".join(json.dumps(record) + "\n" for record in records))

    @property
    def running(self) -> bool:
        if self.interrupts == 1:
            self._while_saving()
        self._polls_left -= 1
        return self._polls_left >= 0 and self.interrupts < 2

    def interrupt(self) -> None:
        self.interrupts += 1

    def finish(self) -> None:
        if self._error is not None:
            raise self._error


@pytest.fixture(name="runs")
def _runs() -> list[ScriptedRun]:
    """All scripted runs, in the order of their starts."""
    return []


@pytest.fixture(name="run")
def _run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: list[ScriptedRun]
) -> Callable[..., list[Path]]:
    """Runs a sweep of scripted runs; returns their run directories in the order of their starts."""

    def run(
        returns: Returns,
        trials: int,
        seeds: int = 1,
        config: str = "td3_pendulum",
        space: tuple[Parameter, ...] = (_GAMMA,),
        while_saving: Callable[[], None] = lambda: None,
        draws: bool = False,
        directory: Path = tmp_path / "study",
    ) -> list[Path]:
        if not draws:  # A picture takes a second.
            monkeypatch.setattr(results, "_picture", lambda *_: b"")
        started: list[Path] = []
        overrides = (f"learn.train_steps={_TRAIN_STEPS}", "evaluate.interval=100")

        def start(*arguments: str) -> ScriptedRun:
            runs.append(ScriptedRun(returns, started, while_saving, *arguments))
            return runs[-1]

        monkeypatch.setattr(trial, "LocalCommand", start)
        settings = SweepSettings(config, overrides, load_config(config, overrides), space, trials, seeds)
        directory.mkdir(exist_ok=True)
        sweep.run_sweep(settings, directory, None)
        return started

    monkeypatch.setattr(trial, "_POLL_INTERVAL_S", 0.0)
    return run


@pytest.fixture(name="stops", autouse=True)
def _stops(monkeypatch: pytest.MonkeyPatch) -> list[Stop]:
    """The stops of all sweeps; they leave pytest's own handlers of signals alone."""
    stops: list[Stop] = []

    def make() -> Stop:
        stops.append(Stop())
        return stops[-1]

    monkeypatch.setattr(Stop, "install", lambda self: None)
    monkeypatch.setattr(sweep, "Stop", make)
    return stops


def _study(tmp_path: Path) -> optuna.Study:
    return optuna.load_study(study_name="study", storage=f"sqlite:///{tmp_path / 'study' / 'study.db'}")


def test_the_best_values_of_all_seeds_become_a_configuration(
    run: Callable[..., list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The first evaluations are of untrained policies, and count for nothing.
    returns = lambda gamma, seed: (-1e6, -1e6, gamma, gamma, gamma + 3 * seed)  # noqa: E731
    started = run(returns, trials=3, seeds=2, draws=True)
    names = [str(path.relative_to(tmp_path / "study" / "trials")) for path in started]
    assert names == [f"{number}/seed-{seed}" for number in range(3) for seed in range(2)]
    assert not any(path.exists() for path in (RunDirectory(path).replay_checkpoints for path in started))
    trials = _study(tmp_path).trials
    for each in trials:
        assert each.value == pytest.approx(each.params["agent.gamma"] + 0.5, abs=1e-5)
    gamma = max(each.params["agent.gamma"] for each in trials)
    best = load_config(str(tmp_path / "study" / "best.yaml"))
    assert best.agent.gamma == pytest.approx(gamma, abs=1e-5)
    assert (best.learn.train_steps, best.seed) == (_TRAIN_STEPS, 0)
    rows = (tmp_path / "study" / "trials.csv").read_text().splitlines()
    assert rows[0] == "trial,state,score,train_steps,time,agent.gamma"
    assert [row.split(",")[:2] for row in rows[1:]] == [[str(i), "complete"] for i in range(3)]
    assert (tmp_path / "study" / "sweep.png").stat().st_size > 5_000
    assert "3 trials complete, 0 pruned" in capsys.readouterr().out


def test_a_trial_below_the_median_ends_early(
    run: Callable[..., list[Path]], runs: list[ScriptedRun], tmp_path: Path
) -> None:
    means = iter([*range(10, 15), 9])

    def returns(gamma: float, seed: int) -> Sequence[float]:
        return (0, *[next(means)] * 4)

    run(returns, trials=6)
    states = [each.state.name for each in _study(tmp_path).trials]
    assert states == ["COMPLETE"] * 5 + ["PRUNED"]
    assert _study(tmp_path).trials[-1].intermediate_values == {100: 9.0}
    # Interrupted twice: it must not save experience that will be removed.
    assert [each.interrupts for each in runs] == [0] * 5 + [2]


def test_a_stopped_trial_is_resumed(
    run: Callable[..., list[Path]], stops: list[Stop], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gammas = []

    def returns(gamma: float, seed: int) -> Sequence[float]:
        gammas.append(gamma)
        if len(gammas) == 2:
            stops[-1].request()
        return (0, 1, 1, 1, 1)

    first = run(returns, trials=3)
    assert (
        "stopped after 1 of 3 trials; the same command with --sweep_dir continues" in capsys.readouterr().out
    )
    second = run(returns, trials=3)
    assert second[0] == first[1] == tmp_path / "study" / "trials" / "1" / "seed-0"
    assert gammas[2] == gammas[1]
    assert len(second) == 2
    assert [each.state.name for each in _study(tmp_path).trials] == [
        "COMPLETE",
        "FAIL",
        "COMPLETE",
        "COMPLETE",
    ]


@pytest.mark.parametrize(("times", "interrupts"), [(1, 1), (2, 2)])
def test_a_second_ctrl_c_gives_up_saving(
    run: Callable[..., list[Path]],
    runs: list[ScriptedRun],
    stops: list[Stop],
    capsys: pytest.CaptureFixture[str],
    times: int,
    interrupts: int,
) -> None:
    def ctrl_c() -> None:
        if stops[-1].interrupts < times:
            stops[-1].receive(signal.SIGINT)

    def returns(gamma: float, seed: int) -> Sequence[float]:
        ctrl_c()
        return (0, 1, 1, 1, 1)

    run(returns, trials=3, while_saving=ctrl_c)
    assert [each.interrupts for each in runs] == [interrupts]
    assert "stopped after 0 of 3 trials" in capsys.readouterr().out


def test_a_failed_trial_counts_and_the_sweep_goes_on(run: Callable[..., list[Path]], tmp_path: Path) -> None:
    outcomes = iter([True, False, True])

    def returns(gamma: float, seed: int) -> Sequence[float]:
        if not next(outcomes):
            raise RunError("learner: the loss is not finite")
        return (0, 1, 1, 1, 1)

    started = run(returns, trials=3)
    assert [each.state.name for each in _study(tmp_path).trials] == ["COMPLETE", "FAIL", "COMPLETE"]
    assert not any(path.exists() for path in (RunDirectory(path).replay_checkpoints for path in started))


@pytest.mark.parametrize(("trials", "failed"), [(20, "3 trials"), (1, "1 trial")])
def test_a_sweep_in_which_nothing_works_fails(
    run: Callable[..., list[Path]], trials: int, failed: str
) -> None:
    def returns(gamma: float, seed: int) -> Sequence[float]:
        raise RunError("learner: the loss is not finite")

    with pytest.raises(RunError, match=rf"the first {failed} failed; the last one: .*the loss is not finite"):
        run(returns, trials=trials)


def test_a_sweep_whose_trials_have_all_failed_fails_again(run: Callable[..., list[Path]]) -> None:
    def returns(gamma: float, seed: int) -> Sequence[float]:
        raise RunError("learner: the loss is not finite")

    for _ in range(2):  # The second time, there is no trial left to run.
        with pytest.raises(RunError, match="the first 1 trial failed"):
            run(returns, trials=1)


def test_a_run_that_somebody_else_stopped_has_no_score(
    run: Callable[..., list[Path]], tmp_path: Path
) -> None:
    with pytest.raises(RunError, match="was stopped before its end"):
        run(lambda gamma, seed: (0, 1), trials=3)


def test_evaluations_of_rolled_back_train_steps_have_no_score(
    run: Callable[..., list[Path]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A learner that died was started again from train step 200: train step 300 was evaluated twice."""
    evaluations = RunDirectory(tmp_path / "study" / "trials" / "0" / "seed-0").metrics("eval")

    def finish(self: ScriptedRun) -> None:
        with evaluations.open("a") as file:
            for train_step, mean in ((300, 3), (400, 4)):
                file.write(json.dumps({"train_step": train_step, "average_return": mean}) + "\n")

    monkeypatch.setattr(ScriptedRun, "finish", finish)
    run(lambda gamma, seed: (0, 1, 2, 9), trials=1)
    (only,) = _study(tmp_path).trials
    assert only.value == 3.0
    assert "\n1 trial complete, 0 pruned\n" in capsys.readouterr().out


def test_a_trial_that_another_session_took_over_ends(
    run: Callable[..., list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It does so after 30 s without a heartbeat, for example while this machine was suspended."""
    gammas = []

    def returns(gamma: float, seed: int) -> Sequence[float]:
        gammas.append(gamma)
        if len(gammas) == 1:
            other = _study(tmp_path)
            other.tell(0, state=TrialState.FAIL)
            RetryHeartbeatStaleTrialCallback()(other, other.trials[0])
        return (0, 1, 1, 1, 1)

    started = run(returns, trials=2)
    assert [each.state.name for each in _study(tmp_path).trials] == ["FAIL", "COMPLETE", "COMPLETE"]
    assert started[0] == started[1]
    assert "trial 0: another session has taken it over" in capsys.readouterr().out


def test_an_error_of_the_database_after_a_trial_was_taken_over_is_raised(
    run: Callable[..., list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(study: optuna.Study) -> None:
        raise OSError("the database is gone")

    def returns(gamma: float, seed: int) -> Sequence[float]:
        _study(tmp_path).tell(0, state=TrialState.FAIL)
        monkeypatch.setattr(optuna.Study, "ask", ask)
        return (0, 1, 1, 1, 1)

    with pytest.raises(OSError, match="the database is gone"):
        run(returns, trials=2)


def test_train_steps_are_searched(run: Callable[..., list[Path]], tmp_path: Path) -> None:
    """A trial's runs end at its own train steps, which also separate the evaluations of its seeds."""
    train_steps = Parameter("learn.train_steps", ("learn.train_steps",), "space.yaml:2", choices=("200",))
    run(lambda gamma, seed: (0, 1, 2), trials=1, seeds=2, space=(_GAMMA, train_steps))
    (only,) = _study(tmp_path).trials
    assert only.state.name == "COMPLETE"
    assert only.intermediate_values == {100: 1.0, 200: 2.0, 300: 1.0, 400: 2.0}


def test_a_sweep_continues_in_the_working_directory(
    run: Callable[..., list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given as `.`, which has no last part."""
    run(lambda gamma, seed: (0, 1, 1, 1, 1), trials=1)
    monkeypatch.chdir(tmp_path / "study")
    assert not run(lambda gamma, seed: (0, 1, 1, 1, 1), trials=1, directory=Path())


def test_a_study_of_other_settings_is_refused(run: Callable[..., list[Path]], tmp_path: Path) -> None:
    run(lambda gamma, seed: (0, 1, 1, 1, 1), trials=1)
    assert list(_study(tmp_path).user_attrs) == ["plan"]  # As in studies that older versions began.
    with pytest.raises(ConfigurationError) as refused:
        run(lambda gamma, seed: (0, 1, 1, 1, 1), trials=1, seeds=2)
    (problem,) = refused.value.problems
    assert (
        problem
        == "--seeds: 2 here, 1 there (study study); allowed: the same as before, or another --sweep_dir"
    )
    with pytest.raises(ConfigurationError, match=r'--config: agent.name: "sac" here, "td3" there'):
        run(lambda gamma, seed: (0, 1, 1, 1, 1), trials=1, config="sac_pendulum")


def test_sessions_that_start_at_once_open_the_study_one_after_the_other(
    run: Callable[..., list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_opens, first_has_opened = threading.Event(), threading.Event()
    storage = sweep.RDBStorage

    def slow_storage(*arguments: object, **options: object) -> optuna.storages.RDBStorage:
        if not first_opens.is_set():
            first_opens.set()
            time.sleep(0.3)
            first_has_opened.set()
        assert first_has_opened.is_set()
        return storage(*arguments, **options)

    monkeypatch.setattr(sweep, "RDBStorage", slow_storage)
    first = threading.Thread(target=run, args=(lambda gamma, seed: range(5), 1))
    first.start()
    assert first_opens.wait(60)
    run(lambda gamma, seed: range(5), trials=1)
    first.join(60)
    assert not first.is_alive()


def test_a_database_that_cannot_be_opened_is_named_without_its_password(tmp_path: Path) -> None:
    settings = SweepSettings("td3_pendulum", (), load_config("td3_pendulum"), (_GAMMA,), trials=1, seeds=1)
    with pytest.raises(ConfigurationError) as error:
        sweep.run_sweep(settings, tmp_path, "nosuchdatabase://me:secret@host/db")
    (line,) = error.value.problems
    assert line.startswith("--storage: 'nosuchdatabase://me:***@host/db' cannot be opened (")
    assert "secret" not in line
