"""Other libraries beside ours: records, tables, command lines, and the comparison of environments."""

import dataclasses
import gzip
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from actorlearner.agents.configuration import load_config
from benchmarks.evidence import __main__ as evidence
from benchmarks.others import __main__ as command
from benchmarks.others import contenders, equality, libraries, measure, ours, tables
from benchmarks.others.job import Job, from_json
from benchmarks.others.picture import picture


def _progress(time: float, env_steps: int, train_steps: int, evaluating_s: float = 0.0) -> dict[str, Any]:
    return {"kind": "progress", "time": time, "env_steps": env_steps, "train_steps": train_steps,
            "evaluating_s": evaluating_s}  # fmt: skip


def _write(path: Path, name: str, job: Job, records: list[dict[str, Any]], peak_mib: int = 100) -> None:
    start = {"kind": "start", "time": 0.0, "contender": name, "commit": "abc1234", "machine": "2 cores",
             "job": dataclasses.asdict(job)}  # fmt: skip
    end = {"kind": "end", "time": 99.0, "peak_bytes": peak_mib << 20}
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(record) + "\n" for record in (start, *records, end))
    path.write_bytes(gzip.compress(lines.encode()))


def _learn_job(name: str, seed: int = 0) -> Job:
    return contenders.learn_job(contenders.LEARN[name], "Pendulum-v1", 4_000, seed, episodes=2)


def _slow_job(size: int) -> Job:
    return contenders.slow_job(contenders.SLOW["sb3-sac"], size, 4_000, 1.0, seed=0)


def test_a_job_survives_the_command_line() -> None:
    job = _learn_job("sb3-sac")
    assert from_json(job.to_json()) == job


@pytest.mark.parametrize(
    ("environments", "updates", "env_steps", "per_training"), [(1, 1, 1, 1), (16, 1, 1, 16), (1, 0.25, 4, 1)]
)
def test_the_ratio_of_updates_to_env_steps(
    environments: int, updates: float, env_steps: int, per_training: int
) -> None:
    job = dataclasses.replace(_slow_job(environments), updates_per_env_step=updates)
    assert (job.env_steps_per_training, job.updates_per_training) == (env_steps, per_training)


def test_only_records_are_parsed() -> None:
    lines = ["pybullet build time", '{"kind": "progress", "env_steps": 1}', "{not one}"]
    assert measure.parse(lines) == [{"kind": "progress", "env_steps": 1}]


@pytest.fixture(name="measured")
def _measured(tmp_path: Path) -> Path:
    """A folder with four trainings of one task, and two in slow simulators."""
    for seed, speed in enumerate((50, 100, 200)):
        job, name = _learn_job("sb3-sac", seed), "sb3-sac"
        records = [
            _progress(10.0, 1_000, 0),
            _progress(20.0, 2_000, 1_000),
            {"kind": "evaluation", "time": 60.0, "env_steps": 2_000, "returns": [-400.0 - 10 * seed, -600.0]},
            _progress(60.0, 2_000, 1_000, 40.0),
            _progress(60.0 + 2_000 / speed, 4_000, 3_000, 40.0),
            {"kind": "evaluation", "time": 99.0, "env_steps": 4_000, "returns": [-150.0, -170.0]},
        ]
        _write(tmp_path / "learn" / f"{name}-{seed}.jsonl.gz", name, job, records)
    _write(tmp_path / "learn" / "ours-sac-0.jsonl.gz", "ours-sac", _learn_job("ours-sac"), [
        _progress(5.0, 2_000, 1_000),
        _progress(15.0, 4_000, 3_000),
        {"kind": "evaluation", "time": 99.0, "env_steps": 3_000, "returns": [-300.0]},
    ], 200)  # fmt: skip
    for size, speed in ((1, 50), (16, 400)):
        records = [_progress(0.0, 0, 1), _progress(4_000 / speed, 4_000, 1)]
        _write(tmp_path / "slow" / f"{size}.jsonl.gz", "sb3-sac", _slow_job(size), records)
    return tmp_path


def test_the_tables_have_medians_without_start_and_evaluations(measured: Path) -> None:
    assert tables.tables(measured) == [
        "| Pendulum-v1 | rounds | env steps/s | train steps/s | return at 3,000 env steps "
        "| minutes to a return of -200 | peak memory, MiB |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| ours-sac | 1 | 200 | 200 | -300 | - | 200 |",
        "| sb3-sac | 3 | 100 | 100 | -332 (-335 to -330) | 0.667 | 100 |",
        "",
        "Commit abc1234, 1970-01-01, 2 cores.",
        "",
        "| env steps/s | updates an env step | 1 environment | 16 environments |",
        "| --- | --- | --- | --- |",
        "| sb3-sac | 1 | 50 | 400 |",
        "",
        "Commit abc1234, 1970-01-01, 2 cores.",
    ]


def test_the_picture_has_a_line_and_a_band_for_each_contender(measured: Path) -> None:
    [runs] = tables.tasks(measured)
    by_env_steps, by_minutes = picture(runs).axes
    assert [line.get_label() for line in by_env_steps.lines] == ["ours-sac", "sb3-sac"]
    assert len(by_minutes.lines) == len(by_minutes.collections) == 2
    theirs = by_env_steps.lines[1]
    assert (theirs.get_xdata()[0], theirs.get_xdata()[-1]) == (2_000, 4_000)
    assert (theirs.get_ydata()[0], theirs.get_ydata()[-1]) == (-505, -160)  # The second of three rounds.
    band = by_env_steps.collections[1].get_paths()[0].get_extents()
    assert (band.ymin, band.ymax) == (-510, -160)
    # The fastest round ends after 30 seconds of training.
    assert by_minutes.lines[1].get_xdata()[-1] == pytest.approx(0.5)


def test_the_pages_have_the_tables_and_the_pictures(measured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, path in (("DOCS", measured), ("EVIDENCE", measured.parent), ("PICTURES", measured)):
        monkeypatch.setattr(evidence, name, path)
    page = measured / "page.md"
    block = f"<!-- others: {measured.name} -->\nold\n<!-- /others -->\n"
    drawn = measured / f"{measured.name}-Pendulum-v1.png"
    page.write_text(block)
    assert list(evidence.draw()) == [page]
    assert not drawn.exists(), "no page shows it"
    page.write_text(f"![Pendulum](pictures/{drawn.name})\n" + block)
    assert list(evidence.draw()) == [page, drawn]
    assert drawn.stat().st_size > 0
    assert page.read_text().splitlines()[3:-2] == tables.tables(measured)


@pytest.mark.parametrize("name", [name for name in contenders.LEARN if name.startswith("ours")])
@pytest.mark.parametrize("environment", contenders.TASKS)
def test_our_settings_are_accepted(name: str, environment: str, tmp_path: Path) -> None:
    contender = contenders.LEARN[name]
    job = contenders.learn_job(contender, environment, None, 3, episodes=2)
    arguments = ours.command(job, contender.precision, tmp_path / "run")
    config = load_config(
        arguments[arguments.index("--config") + 1], arguments[arguments.index("--set") + 1 :]
    )
    assert config.seed == 3
    assert config.learn.precision == contender.precision
    assert config.learn.batch_size == job.batch_size
    assert config.collect.actors * config.collect.envs_per_actor == contender.environments
    if contender.algorithm == "sac":
        assert config.learn.train_steps == job.env_steps - job.random_steps
        assert config.agent.actor_learning_rate == job.learning_rate


def test_our_slow_actors_have_one_environment_each(tmp_path: Path) -> None:
    arguments = ours.command(_slow_job(16), "float32", tmp_path)
    config = load_config("sac_pendulum", arguments[arguments.index("--set") + 1 :])
    assert (config.collect.actors, config.collect.envs_per_actor) == (16, 1)
    assert config.environment.kwargs == {"wait_s": 0.02}
    assert config.evaluate.interval is None


def test_names_of_files_differ() -> None:
    jobs = [_learn_job("sb3-sac"), _learn_job("sb3-sac", 1), _slow_job(1), _slow_job(4)]
    assert len({command.file_name("sb3-sac", job) for job in jobs}) == 4


def test_trainings_go_on_in_rounds_after_one_that_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured: list[str] = []

    def measure(name: str, contender: contenders.Contender, job: Job, path: Path) -> bool:
        measured.append(f"{path.relative_to(tmp_path)}")
        return len(measured) > 1

    monkeypatch.setattr(command, "measure", measure)
    arguments = ["--out", str(tmp_path), "--rounds", "2", "--env_steps", "50"]
    assert command.main(["slow", *arguments, "--only", "ours-sac", "sb3-sac"]) == 1
    assert measured[:3] == [f"slow/{name}.jsonl.gz" for name in (
        "ours-sac-Pendulum-v1-1-1-50-0", "sb3-sac-Pendulum-v1-1-1-50-0", "ours-sac-Pendulum-v1-1-1-50-1",
    )]  # fmt: skip
    assert len(measured) == 2 * 2 * len(contenders.SLOW_SIZES)
    assert capsys.readouterr().err.splitlines() == [
        f"benchmarks.others: error: ours-sac failed: {tmp_path}/slow/ours-sac-Pendulum-v1-1-1-50-0.log"
    ]
    assert command.main(["learn", *arguments, "--only", "ours-sac", "ours-ppo"]) == 0
    assert measured[-3:] == [f"learn/{name}.jsonl.gz" for name in (
        "ours-ppo-HalfCheetahBulletEnv-v0-50-0", "ours-sac-HalfCheetahBulletEnv-v0-50-1",
        "ours-ppo-HalfCheetahBulletEnv-v0-50-1",
    )]  # fmt: skip


@pytest.mark.parametrize("arguments", [["learn"], ["install", "--only", "none"], ["slow", "--out"]])
def test_a_bad_command_line_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert "error" in capsys.readouterr().err


def test_a_library_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(libraries, "is_installed", lambda library: False)
    assert command.main(["check", "--only", "sb3"]) == 1
    assert "sb3 is not installed" in capsys.readouterr().err


@pytest.mark.parametrize("library", libraries.LIBRARIES)
def test_every_library_has_exact_versions_and_a_runner(library: str) -> None:
    folder = Path(libraries.__file__).parent
    lines = (folder / f"{library}.txt").read_text().splitlines()
    assert all("==" in line for line in lines)
    assert "pybullet==3.2.7" in lines
    assert (folder / "runners" / f"{library}_runner.py").exists()


def test_the_first_difference_of_environments_is_named() -> None:
    limits = [[[-float("inf")], [float("inf")]], [[-1.0], [1.0]]]
    ours_ = {"limits": limits, "steps": [[[0.0], 1.0, False, False, [1.0]], [[1.0], 2.0, False, True, [2.0]]]}
    assert equality.differences(ours_, ours_) == []
    steps = [[[0.0], 1.0, False, False, [1.0]], [[1.0], 2.5, True, False, [2.0]]]
    theirs = {"limits": [limits[0], [[-2.0], [1.0]]], "steps": steps}
    assert equality.differences(theirs, ours_) == [
        "limits of actions: [[-2.0], [1.0]], ours [[-1.0], [1.0]]",
        "env step 1: reward, terminated, truncated",
    ]


@pytest.mark.long
@pytest.mark.parametrize("library", libraries.LIBRARIES)
def test_a_runner_trains(library: str) -> None:
    if not libraries.is_installed(library):
        pytest.skip(f"NOT RUN: {library} is not installed (python -m benchmarks.others install)")
    job = contenders.learn_job(contenders.Contender(library), "Pendulum-v1", 200, seed=0, episodes=1)
    done = subprocess.run(
        libraries.runner_command(library, job.to_json()),
        cwd=libraries.REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    records = measure.parse(done.stdout.splitlines())
    assert records[-1]["kind"] == "progress"
    assert records[-1]["env_steps"] >= 200
    assert records[-1]["train_steps"] > 0
    assert [len(record["returns"]) for record in records if record["kind"] == "evaluation"] == [1]
