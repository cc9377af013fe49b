"""Run directories: their contents, and the run that each belongs to."""

import concurrent.futures
import dataclasses
import datetime
import json
import os
import platform
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from actorlearner.agents.configuration import load_config
from actorlearner.config.resolved import fingerprint, to_yaml
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError, RunError
from actorlearner.records import run_directory
from actorlearner.records.run_directory import RunDirectory, new_run_directory


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path / "some" / "run")


def learning(config: Config, **keys: Any) -> Config:
    return dataclasses.replace(config, learn=dataclasses.replace(config.learn, **keys))


def test_paths(directory: RunDirectory) -> None:
    path = directory.path
    assert directory.config == path / "config.yaml"
    assert directory.manifest == path / "manifest.json"
    assert directory.learner_checkpoints == path / "checkpoints" / "learner"
    assert directory.policies == path / "policies"
    assert directory.metrics("collect-3") == path / "metrics" / "collect-3.jsonl"
    assert directory.summaries("learner") == path / "summaries" / "learner"
    assert directory.log("eval-actor") == path / "logs" / "eval-actor.log"
    assert not path.exists()


def test_a_relative_path_stays_where_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    directory = RunDirectory(Path("run"))
    monkeypatch.chdir("/")
    assert directory.path == tmp_path / "run"


def test_prepare_writes_the_resolved_configuration(directory: RunDirectory, small_config: Config) -> None:
    assert not directory.holds_a_run
    directory.prepare(small_config)
    assert directory.holds_a_run
    assert directory.config.read_text() == to_yaml(small_config)
    assert load_config(str(directory.config)) == small_config
    assert sorted(path.name for path in directory.path.iterdir()) == ["config.yaml", "manifest.json"]


def test_the_manifest_says_what_ran(
    directory: RunDirectory, small_config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/some/where/actorlearner", "local", "--config", "x.yaml"])
    before = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    directory.prepare(small_config)
    manifest = json.loads(directory.manifest.read_text())
    assert set(manifest) == {
        *("run_id", "created", "fingerprint", "command", "host", "python", "versions"),
    }
    assert manifest["fingerprint"] == fingerprint(small_config)
    assert manifest["command"] == ["actorlearner", "local", "--config", "x.yaml"]
    assert before <= datetime.datetime.fromisoformat(manifest["created"])
    assert datetime.datetime.fromisoformat(manifest["created"]) <= datetime.datetime.now(datetime.UTC)
    assert manifest["host"] == os.uname().nodename
    assert manifest["python"] == ".".join(map(str, sys.version_info[:3]))
    assert manifest["versions"]["tensorflow"] == "2.15.1"
    assert set(manifest["versions"]) == {
        *("actorlearner", "tensorflow", "tf-agents", "dm-reverb", "numpy", "gym", "pybullet"),
    }


def test_runs_have_different_ids(tmp_path: Path, small_config: Config) -> None:
    ids = set()
    for name in ("one", "two"):
        directory = RunDirectory(tmp_path / name)
        directory.prepare(small_config)
        ids.add(json.loads(directory.manifest.read_text())["run_id"])
    assert len(ids) == 2


def test_a_joining_directory_keeps_the_run_id_of_its_server(
    directory: RunDirectory, small_config: Config
) -> None:
    directory.prepare(small_config, joins=True)
    assert directory.run_id is None
    directory.remember_server(0, "from a server")
    assert RunDirectory(directory.path).run_id == "from a server"
    assert directory.own_run_id() == "from a server"


def test_a_joining_directory_without_a_run_id_makes_its_own(
    directory: RunDirectory, small_config: Config
) -> None:
    directory.prepare(small_config, joins=True)
    run_id = directory.own_run_id()
    assert run_id
    assert directory.run_id == run_id == directory.own_run_id()


def test_a_run_is_resumed_by_the_same_configuration(directory: RunDirectory, small_config: Config) -> None:
    directory.prepare(small_config)
    before = directory.manifest.read_bytes(), directory.config.read_bytes()
    RunDirectory(directory.path).prepare(small_config)
    assert (directory.manifest.read_bytes(), directory.config.read_bytes()) == before


def test_another_configuration_is_refused_with_the_keys_that_differ(
    directory: RunDirectory, small_config: Config
) -> None:
    directory.prepare(small_config)
    before = directory.config.read_bytes()
    other = dataclasses.replace(learning(small_config, batch_size=32), seed=7)
    with pytest.raises(ConfigurationError) as refusal:
        RunDirectory(directory.path).prepare(other)
    start = f"--run_dir: {directory.path} holds a run of another configuration: "
    assert refusal.value.problems == (
        f"{start}learn.batch_size: 32 here, 4 there",
        f"{start}seed: 7 here, 0 there",
    )
    assert directory.config.read_bytes() == before


def test_a_run_is_extended_and_never_shortened(directory: RunDirectory, small_config: Config) -> None:
    directory.prepare(small_config)
    longer = learning(small_config, train_steps=small_config.learn.train_steps + 1)
    directory.prepare(longer)
    assert load_config(str(directory.config)) == longer
    assert directory.read_manifest()["fingerprint"] == fingerprint(longer)
    with pytest.raises(ConfigurationError, match=r"learn\.train_steps: 100 here, 101 there"):
        directory.prepare(small_config)
    assert load_config(str(directory.config)) == longer


def test_a_spoilt_configuration_is_refused(directory: RunDirectory, small_config: Config) -> None:
    directory.prepare(small_config)
    directory.config.write_text("learn: {batch_size: many}\n")
    with pytest.raises(ConfigurationError) as refusal:
        directory.prepare(small_config)
    assert any("learn.batch_size" in problem for problem in refusal.value.problems)


@pytest.mark.parametrize("manifest", ["", "[1]", "{", None])
def test_a_spoilt_manifest_is_refused(
    directory: RunDirectory, small_config: Config, manifest: str | None
) -> None:
    directory.prepare(small_config)
    directory.manifest.unlink()
    if manifest is not None:
        directory.manifest.write_text(manifest)
    before = directory.config.read_bytes()
    with pytest.raises(ConfigurationError, match=r"manifest\.json cannot be read: "):
        directory.prepare(learning(small_config, train_steps=small_config.learn.train_steps + 1))
    assert directory.config.read_bytes() == before


def test_a_long_name_of_an_experiment_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    directory = new_run_directory("é" * 250)
    assert directory.path.name.startswith("é" * 50 + "-")


def test_a_directory_that_holds_something_else_may_be_used(
    directory: RunDirectory, small_config: Config
) -> None:
    directory.path.mkdir(parents=True)
    (directory.path / "notes.txt").write_text("mine")
    directory.prepare(small_config)
    assert directory.holds_a_run
    assert (directory.path / "notes.txt").read_text() == "mine"


def test_a_directory_whose_preparation_was_interrupted_holds_no_run(
    directory: RunDirectory, small_config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(config: Config) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run_directory, "to_yaml", crash)
        with pytest.raises(KeyboardInterrupt):
            directory.prepare(small_config)
    assert not directory.holds_a_run
    directory.prepare(small_config)
    assert directory.holds_a_run


@pytest.mark.parametrize("where", ["in the way", "in the way/run"])
def test_a_directory_that_cannot_be_made_fails_in_one_line(
    tmp_path: Path, small_config: Config, where: str
) -> None:
    (tmp_path / "in the way").write_text("a file")
    with pytest.raises(RunError) as failure:
        RunDirectory(tmp_path / where).prepare(small_config)
    message = str(failure.value)
    assert message.startswith(f"cannot write to the run directory {tmp_path / where}: ")
    assert len(message.splitlines()) == 1


def test_what_others_leave_in_a_run_directory_is_not_in_its_way(
    directory: RunDirectory, small_config: Config
) -> None:
    """For example the dangling links that Weights & Biases leaves."""
    directory.prepare(small_config)
    (directory.path / "wandb").mkdir()
    for link in (directory.path / "latest", directory.path / "wandb" / "latest-run"):
        link.symlink_to("gone")
    directory.prepare(small_config)
    assert (directory.path / "latest").is_symlink()


def test_new_run_directories_are_named_by_experiment_and_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Now(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> "Now":
            return cls(2024, 5, 6, 7, 8, 9)

    monkeypatch.setattr(run_directory.datetime, "datetime", Now)
    monkeypatch.chdir(tmp_path)
    names = [new_run_directory("sac_pendulum").path.relative_to(tmp_path).as_posix() for _ in range(3)]
    assert all((tmp_path / name).is_dir() for name in names)
    stem = "runs/sac_pendulum-20240506-070809"
    assert names == [stem, f"{stem}-2", f"{stem}-3"]


def test_two_new_run_directories_of_one_second_are_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    together = threading.Barrier(8)

    def make() -> Path:
        together.wait(30)
        return new_run_directory("same").path

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        paths = [made.result() for made in [pool.submit(make) for _ in range(8)]]
    assert len(set(paths)) == 8


def test_a_new_run_directory_that_cannot_be_made_fails_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs").write_text("a file")
    with pytest.raises(
        RunError, match=r"^cannot write to the run directory .*: (Not a directory|File exists)$"
    ):
        new_run_directory("sac_pendulum")


HOLD = """
import sys
from pathlib import Path
from actorlearner.records.run_directory import RunDirectory
RunDirectory(Path(sys.argv[1])).hold()
print("holds", flush=True)
sys.stdin.read()
"""


def test_one_process_at_a_time_holds_a_run_directory(directory: RunDirectory, small_config: Config) -> None:
    command = [sys.executable, "-c", HOLD, str(directory.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"holds\n"
        with pytest.raises(ConfigurationError) as refusal:
            directory.hold()
        host = re.escape(platform.node())
        assert re.fullmatch(
            rf"--run_dir: {re.escape(str(directory.path))} is in use by "
            rf"'-c .*', process {first.pid} on {host}, "
            r"since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00; allowed: a directory in which nothing runs",
            *refusal.value.problems,
        )
        first.kill()  # The kernel frees what it held.
    directory.hold()
    directory.prepare(small_config)


def test_what_an_environment_forks_does_not_hold_the_run_directory(directory: RunDirectory) -> None:
    forks = (
        HOLD
        + "import os, time\nif os.fork() == 0:\n    print(os.getpid(), flush=True)\n    time.sleep(100)\n"
    )
    command = [sys.executable, "-c", forks, str(directory.path)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"holds\n"
        worker = int(first.stdout.readline())
        try:
            first.wait(30)
            directory.hold()
        finally:
            os.kill(worker, signal.SIGKILL)


def test_what_a_refused_start_has_left_is_discarded(tmp_path: Path, small_config: Config) -> None:
    (tmp_path / "above").mkdir()
    directory = RunDirectory(tmp_path / "above" / "of" / "run")
    directory.hold()
    directory.prepare(small_config)
    log = directory.log("learner")
    log.parent.mkdir()
    log.touch()
    # One role may refuse the configuration when others already work: the learner, `agent.start_from`.
    for made in (directory.metrics("replay"), directory.summaries("replay"), directory.replay_checkpoints):
        made.mkdir(parents=True)
    directory.discard()
    assert [path.name for path in tmp_path.rglob("*")] == ["above"]
    directory.prepare(small_config)  # Another may take its place.


def test_a_directory_that_nobody_made_needs_no_discarding(tmp_path: Path) -> None:
    RunDirectory(tmp_path / "run").discard()
    assert not any(tmp_path.iterdir())


def test_what_others_have_made_is_not_discarded(tmp_path: Path, small_config: Config) -> None:
    path = tmp_path / "runs" / "run"
    directory = RunDirectory(path)
    directory.prepare(small_config)
    resumed = RunDirectory(path)
    resumed.prepare(small_config)
    resumed.discard()
    assert resumed.holds_a_run
    for kept in (directory.policies, directory.learner_checkpoints, path / "notes.txt"):
        kept.mkdir(parents=True)
        directory.discard()
        assert directory.holds_a_run
        kept.rmdir()
    (tmp_path / "runs" / "another").mkdir()
    directory.discard()
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["another"]


def test_a_directory_that_was_only_held_is_discarded(tmp_path: Path) -> None:
    """`actorlearner local` does this when the port for Prometheus is in use."""
    directory = RunDirectory(tmp_path / "runs" / "run")
    directory.hold()
    directory.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_directory_in_which_another_process_was_refused_is_discarded(
    tmp_path: Path, small_config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`actorlearner.train` makes the directory, and starts a process that may be refused there."""
    monkeypatch.chdir(tmp_path)
    directory = new_run_directory("sac_pendulum")
    other = RunDirectory(directory.path)
    other.hold()
    other.prepare(small_config)
    other.discard()
    directory.discard()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("free", ["discard", "withdraw"])
def test_a_directory_that_was_there_before_can_be_used_after_a_refused_start(
    tmp_path: Path, small_config: Config, free: str
) -> None:
    directory = RunDirectory(tmp_path)
    directory.hold()
    directory.prepare(small_config)
    directory.log("learner").parent.mkdir()
    directory.log("learner").write_text("refused\n")
    getattr(directory, free)()
    assert {path.name for path in tmp_path.iterdir()} == {"lock", "logs"}
    assert directory.log("learner").read_text() == "refused\n"
    RunDirectory(tmp_path).prepare(dataclasses.replace(small_config, seed=7))


@pytest.mark.parametrize("kept", ["metrics", "checkpoints", "notes.txt"])
def test_a_directory_with_more_than_a_start_leaves_is_not_withdrawn(
    tmp_path: Path, small_config: Config, kept: str
) -> None:
    directory = RunDirectory(tmp_path)
    directory.prepare(small_config)
    (tmp_path / kept).mkdir()
    before = directory.config.read_bytes(), directory.manifest.read_bytes()
    directory.withdraw()
    directory.discard()
    assert (directory.config.read_bytes(), directory.manifest.read_bytes()) == before


def test_a_run_that_was_there_before_is_not_withdrawn(tmp_path: Path, small_config: Config) -> None:
    RunDirectory(tmp_path).prepare(small_config)
    resumed = RunDirectory(tmp_path)
    resumed.prepare(learning(small_config, train_steps=small_config.learn.train_steps + 1))
    resumed.withdraw()
    assert resumed.holds_a_run


def test_check_same_does_not_modify_the_run_directory(directory: RunDirectory, small_config: Config) -> None:
    directory.prepare(small_config)
    paths = directory.config, directory.manifest
    before = [(path.read_bytes(), path.stat().st_mtime_ns) for path in paths]
    directory.check_same(small_config)
    with pytest.raises(ConfigurationError) as refusal:
        directory.check_same(learning(small_config, train_steps=101))
    start = f"--run_dir: {directory.path} holds a run of another configuration: "
    assert refusal.value.problems == (f"{start}learn.train_steps: 101 here, 100 there",)
    assert [(path.read_bytes(), path.stat().st_mtime_ns) for path in paths] == before


def test_a_run_of_another_algorithm_is_not_the_same(directory: RunDirectory) -> None:
    directory.prepare(load_config("sac_pendulum"))
    with pytest.raises(ConfigurationError, match=r'agent\.name: "td3" here, "sac" there'):
        directory.check_same(load_config("td3_pendulum"))


@pytest.mark.parametrize("command", ["local", "learner --replay_address localhost:1"])
def test_a_second_command_on_a_run_directory_is_refused(directory: RunDirectory, command: str) -> None:
    directory.hold()
    before = sorted(directory.path.rglob("*"))
    arguments = [*command.split(), "--config", "sac_pendulum", "--run_dir", str(directory.path)]
    ended = subprocess.run(
        [sys.executable, "-m", "actorlearner", *arguments], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert (ended.stdout, ended.stderr.count("\n")) == ("", 1)
    assert f"--run_dir: {directory.path} is in use by '" in ended.stderr
    assert f", process {os.getpid()} on " in ended.stderr
    assert sorted(directory.path.rglob("*")) == before


def test_a_run_of_another_algorithm_is_refused_with_the_keys_that_differ(directory: RunDirectory) -> None:
    directory.prepare(load_config("sac_pendulum"))
    with pytest.raises(ConfigurationError) as error:
        directory.prepare(load_config("td3_pendulum"))
    there = f"--run_dir: {directory.path} holds a run of another configuration: "
    assert f'{there}agent.name: "td3" here, "sac" there' in error.value.problems
    assert any(line.startswith(f"{there}agent.initial_alpha: absent here, ") for line in error.value.problems)
    assert f"{there}agent.exploration_noise: 0.1 here, absent there" in error.value.problems


def test_a_key_that_an_older_run_lacks_has_its_default(directory: RunDirectory, small_config: Config) -> None:
    directory.prepare(small_config)
    text = directory.config.read_text()
    assert "  max_faults: 10\n" in text
    directory.config.write_text(text.replace("  max_faults: 10\n", ""))
    directory.prepare(small_config)
    faults = dataclasses.replace(small_config.environment, max_faults=3)
    with pytest.raises(ConfigurationError, match=r"environment\.max_faults: 3 here, 10 there"):
        directory.prepare(dataclasses.replace(small_config, environment=faults))
