"""What of a run is to be played is found by its path, or refused in one line."""

from pathlib import Path

import pytest

from actorlearner.acting.policy_source import find_policy
from actorlearner.agents.dqn import DqnConfig
from actorlearner.config.schema import Config, EnvironmentConfig
from actorlearner.errors import ConfigurationError
from actorlearner.records.run_directory import CONFIG_IN_POLICY, RunDirectory

CONFIG = Config(environment=EnvironmentConfig(suite="gym", name="CartPole-v1"), agent=DqnConfig())


@pytest.fixture(name="run")
def _run(tmp_path: Path) -> Path:
    """A run directory without a policy."""
    directory = RunDirectory(tmp_path / "run")
    directory.prepare(CONFIG)
    return directory.path


def save(policy: Path, config: bool = True) -> None:
    """Leaves of a SavedModel what finding it needs."""
    (policy / CONFIG_IN_POLICY).parent.mkdir(parents=True)
    (policy / "saved_model.pb").touch()
    if config:
        (policy / CONFIG_IN_POLICY).write_bytes((policy.parents[1] / "config.yaml").read_bytes())


def refusal(path: Path) -> str:
    with pytest.raises(ConfigurationError) as refused:
        find_policy(str(path))
    (line,) = refused.value.problems
    return line


def test_a_run_directory_names_its_best_policy_or_else_the_greedy_one(run: Path) -> None:
    assert "is a run directory without a policy" in refusal(run)
    save(run / "policies" / "greedy_policy")
    assert find_policy(str(run)).path == run / "policies" / "greedy_policy"
    save(run / "policies" / "best")
    source = find_policy(str(run))
    assert source.path == run / "policies" / "best"
    assert source.config == CONFIG
    assert source.run is not None
    assert source.run.path == run


def test_a_policy_needs_its_own_configuration_outside_of_a_run(run: Path, tmp_path: Path) -> None:
    save(run / "policies" / "policy", config=False)
    assert find_policy(str(run / "policies" / "policy")).config == CONFIG
    (run / "policies" / "policy").rename(tmp_path / "moved")
    assert "does not say in which environment it acts" in refusal(tmp_path / "moved")
    (tmp_path / "moved" / CONFIG_IN_POLICY).write_bytes((run / "config.yaml").read_bytes())
    moved = find_policy(str(tmp_path / "moved"))
    assert (moved.config, moved.run) == (CONFIG, None)


def test_a_checkpoint_is_found_by_its_name(run: Path, tmp_path: Path) -> None:
    folder = run / "checkpoints" / "learner"
    folder.mkdir(parents=True)
    for step in (90, 100):
        (folder / f"ckpt-{step}.index").touch()
    for name in ("ckpt-100", "ckpt-100.index"):
        source = find_policy(str(folder / name))
        assert (source.path, source.is_checkpoint, source.config) == (folder / "ckpt-100", True, CONFIG)
    assert refusal(folder / "ckpt-7").endswith("; there are ckpt-90, ckpt-100")
    (folder / "ckpt-100.index").rename(tmp_path / "ckpt-100.index")
    assert "is a checkpoint outside of a run directory" in refusal(tmp_path / "ckpt-100")


def test_other_paths_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in ("", ".", "/", str(tmp_path)):
        assert "is none of a run, a policy and a checkpoint" in refusal(Path(path))
    for name in ("nothing", ".index"):
        assert "does not exist" in refusal(tmp_path / name)
