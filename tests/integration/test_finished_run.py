"""A run that has finished: its files, and its policies when they are played and filmed.

Its results are its best policy, copies of policies, and a checkpoint.
"""

import json
import os
import re
import shutil
import uuid
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
import tensorflow as tf

from actorlearner import evaluate, load_config
from actorlearner.acting.best_record import BestRecord, read_best
from actorlearner.acting.episodes import play_episodes
from actorlearner.acting.policy_source import find_policy
from actorlearner.acting.saved_policy import load_source
from actorlearner.api import Run
from actorlearner.environments.guarded import load_guarded
from actorlearner.environments.specs import environment_specs
from actorlearner.process.stop import Stop
from actorlearner.replay.item_size import MAX_ROWS
from tests.support.processes import REPOSITORY, TINY_RUN, Command, marked_processes, records
from tests.support.warm import MARK_VARIABLE

pytestmark = pytest.mark.integration

_EPISODES = 8
_LENGTH = 50


@pytest.fixture(name="run", scope="module")
def _run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run that has finished; no process and no temporary file is left."""
    folder, mark = tmp_path_factory.mktemp("play"), uuid.uuid4().hex
    temporary = folder / "temporary"
    temporary.mkdir()
    ended = actorlearner(
        folder,
        *("local", "--config", str(REPOSITORY / "configs" / "td3_pendulum.yaml"), "--run_dir", "run"),
        *("--set", *TINY_RUN, "learn.train_steps=1000", "learn.profile=500,520", "agent.n_step=3"),
        *("collect.actors=2", "collect.envs_per_actor=2", f"environment.max_episode_steps={_LENGTH}"),
        "collect.variables_interval_s=0.02",  # Training may take less than a second.
        *("evaluate.interval=500", f"evaluate.episodes={_EPISODES}", "evaluate.video_interval=1000"),
        **{MARK_VARIABLE: mark, "TMPDIR": str(temporary)},
    )
    assert ended.process.returncode == 0, ended.err
    assert marked_processes(mark) == []
    assert list(temporary.iterdir()) == []
    (folder / "printed").write_text(ended.out)
    return folder / "run"


def actorlearner(folder: Path, *arguments: str, fresh: bool = False, **variables: str) -> Command:
    """Runs a command to its end."""
    # TensorFlow may print, and there is no display, as on many users' machines.
    left_out = ("DISPLAY", "TF_CPP_MIN_LOG_LEVEL")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment |= {"PYTHONPATH": str(REPOSITORY)} | variables
    command = Command(("-m", "actorlearner", *arguments), folder, environment, fresh=fresh)
    command.finish()
    return command


def rollout(folder: Path, *arguments: str) -> list[str]:
    """The lines that it printed."""
    ended = actorlearner(folder, "rollout", *arguments)
    assert (ended.process.returncode, ended.err) == (0, "")
    return ended.out.splitlines()


def facts_of(run: Path) -> BestRecord:
    facts = read_best(run / "policies" / "best")
    assert facts is not None
    return facts


def test_the_run_trained_and_evaluated_and_has_its_files(run: Path) -> None:
    metrics = run / "metrics"
    steps = [record["train_step"] for record in records(metrics / "learner.jsonl")]
    assert steps == sorted(steps)
    assert steps[-1] == 1000
    _check_actors(metrics)
    evaluations = records(metrics / "eval.jsonl")
    assert [record["train_step"] for record in evaluations] == [0, 500, 1000]
    assert all(record["lengths"] == [_LENGTH] * _EPISODES for record in evaluations)
    _check_one_update_an_env_step(metrics)
    _check_files(run)
    _check_printed(run.with_name("printed").read_text())


def _check_actors(metrics: Path) -> None:
    """The versions of an actor's variables only grow; one actor may have done all the work of the other."""
    versions = [
        [record["policy_train_step"] for record in records(metrics / f"collect-{index}.jsonl")]
        for index in range(2)
    ]
    assert versions == [sorted(each) for each in versions]
    assert max(each[-1] for each in versions) > 0


def _check_one_update_an_env_step(metrics: Path) -> None:
    newest = records(metrics / "learner.jsonl")[-1]
    # n-step transitions overlap: there is still one for each env step.
    # min_size transitions before the first train step, then one each. The error buffer is one item of each
    # actor; whole items are counted, and the batches of two rounds of items are sampled ahead of training.
    assert newest["env_steps"] == pytest.approx(200 + 1000, abs=6 * MAX_ROWS)
    inserted = records(metrics / "replay.jsonl")[-1]["inserts"]
    taken = sum(records(metrics / f"collect-{index}.jsonl")[-1]["env_steps"] for index in range(2))
    # Two actors' unfilled items, which count as full ones, or what the rate limiter held back at the end.
    assert -2 * MAX_ROWS < taken - inserted <= 2 * 4 * MAX_ROWS


def _check_files(run: Path) -> None:
    assert json.loads((run / "manifest.json").read_text())["run_id"]
    assert (run / "config.yaml").exists()
    assert (run / "checkpoints" / "learner" / "ckpt-1000.index").exists()
    for policy in ("policy", "collect_policy", "greedy_policy"):
        assert (run / "policies" / policy / "saved_model.pb").exists()
    logs = {path.name for path in (run / "logs").iterdir()}
    actors = {"collect-actor-0.log", "collect-actor-1.log"}
    assert logs == {"fork-server.log", "replay-server.log", "learner.log", "eval-actor.log"} | actors
    assert list((run / "summaries" / "learner" / "plugins" / "profile").glob("*/*.xplane.pb"))
    assert {path.name for path in (run / "summaries").iterdir()} == {
        *("learner", "eval", "collect-0", "collect-1", "replay")
    }


def _check_printed(out: str) -> None:
    first = out.splitlines()[0]
    assert re.fullmatch(r"run directory: .*/run", first)
    assert re.search(rf"train step 1,000: AverageReturn -\d+\.\d\d, AverageEpisodeLength {_LENGTH}.0", out)
    assert re.search(r"totals +1,000 train steps, [\d,]+ env steps, [\d,]+ episodes", out)
    assert "tensorflow" not in out.lower()


def test_the_best_policy_is_that_of_the_best_evaluation_and_is_played_again(run: Path) -> None:
    evaluations = records(run / "metrics" / "eval.jsonl")
    best = max(evaluations, key=lambda record: (record["average_return"], record["train_step"]))
    facts = facts_of(run)
    assert (facts.train_step, facts.chosen.returns) == (best["train_step"], best["returns"])
    assert facts.fresh is not None
    assert len(facts.fresh.returns) == _EPISODES
    assert not set(facts.fresh.returns) & set(facts.chosen.returns)
    (again,) = records(run / "metrics" / "best.jsonl")
    assert (again["train_step"], again["returns"]) == (facts.train_step, facts.fresh.returns)
    assert f"best policy    {facts.describe()}\n" in run.with_name("printed").read_text()


def test_the_saved_policy_plays_as_was_recorded(run: Path) -> None:
    source = find_policy(str(run))
    environment = load_guarded(
        source.config.environment, source.config.seed, "eval-actor", 0, 0, purpose="best policy"
    )
    policy = load_source(source, environment_specs(environment))
    episodes = play_episodes(source.config, [environment], policy.function, _EPISODES, Stop())
    fresh = facts_of(run).fresh
    assert episodes is not None
    assert fresh is not None
    # The last digits of a sum depend on the threads that it is shared among.
    np.testing.assert_allclose([episode.episode_return for episode in episodes], fresh.returns, rtol=0.01)


def test_the_api_plays_the_best_policy(run: Path) -> None:
    policy = Run(run, load_config(run / "config.yaml")).best_policy()
    assert policy([0.0, 1.0, 0.0]).shape == (1,)
    assert [episode.length for episode in evaluate(policy, episodes=2)] == [_LENGTH] * 2


def test_a_rollout_agrees_with_what_was_recorded(run: Path) -> None:
    title, *lines, mean = rollout(run.parent, "run", "--episodes", str(_EPISODES))
    facts = facts_of(run)
    assert title == f"policy run/policies/best, train step {facts.train_step:,}, in Pendulum-v1"
    assert len(lines) == _EPISODES
    for i, line in enumerate(lines):
        assert re.fullmatch(rf"Episode #{i}: reward: -\d+\.\d+, length: {_LENGTH}", line), line
    match = re.fullmatch(rf"mean of 8: reward: (.+) ± (.+), length: {_LENGTH}.0 ± 0.0", mean)
    assert match, mean
    fresh = facts.fresh
    assert fresh is not None
    error = np.hypot(float(match[2]), fresh.deviation) / np.sqrt(_EPISODES - 1)
    assert abs(float(match[1]) - fresh.average) <= 4 * error


def test_a_policy_that_was_moved_plays_as_its_checkpoint(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run / "policies" / "greedy_policy", tmp_path / "moved")
    title, *moved = rollout(tmp_path, "moved", "--episodes", "2", "--seed", "5")
    assert title == "policy moved, train step 1,000, in Pendulum-v1"
    assert len(moved) == 3
    checkpoint = run / "checkpoints" / "learner" / "ckpt-1000"
    title, *restored = rollout(tmp_path, str(checkpoint), "--episodes", "2", "--seed", "5")
    assert title == f"the greedy policy of {checkpoint}, train step 1,000, in Pendulum-v1"
    assert restored == moved


def check_video(path: Path, fps: int, frames: int) -> None:
    reader = imageio_ffmpeg.read_frames(str(path))
    facts = next(reader)
    read = list(reader)
    assert (facts["fps"], facts["size"], len(read)) == (fps, (500, 500), frames)
    assert len(set(read)) > frames / 4  # The pendulum moves.
    assert path.with_suffix(".png").stat().st_size > 1_000


def test_a_video_shows_whole_episodes(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run / "policies" / "best", tmp_path / "moved")
    video = ("video", "moved", "--episodes", "1", "--fps", "15", "--out", "a/b.mp4")
    ended = actorlearner(tmp_path, *video)
    assert (ended.process.returncode, ended.err) == (0, "")
    assert "video: a/b.mp4, 500x500, 2.6 s, 15 frames a second\nstill: a/b.png\n" in ended.out
    check_video(tmp_path / "a" / "b.mp4", 15, 39)  # 51 states, one in 0.05 s of Pendulum-v1's world.


def test_training_was_filmed(run: Path) -> None:
    """The video of train step 1,000 is skipped if the previous one is unfinished."""
    videos = sorted(path.stem for path in (run / "videos").glob("*.mp4"))
    assert videos in (["0"], ["0", "1000"])
    assert sorted(path.stem for path in (run / "videos").glob("*.png")) == videos
    left_out = "no video of train step 1000: the previous one is unfinished"
    assert (left_out in (run / "logs" / "eval-actor.log").read_text()) == (videos == ["0"])
    for train_step in videos:
        check_video(run / "videos" / f"{train_step}.mp4", 30, 77)


@pytest.mark.long
def test_tensorflow_prints_nothing_where_a_command_imports_it(run: Path) -> None:
    ended = actorlearner(run.parent, "rollout", "run", "--episodes", "1", fresh=True)
    assert (ended.process.returncode, ended.err) == (0, "")
    assert "tensorflow" not in ended.out.lower()


def test_what_cannot_be_loaded_is_refused_in_one_line(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run / "policies" / "best", tmp_path / "cut")
    data = tmp_path / "cut" / "variables" / "variables.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:100])
    ended = actorlearner(tmp_path, "rollout", "cut")
    assert (ended.process.returncode, ended.out) == (2, "")
    assert ended.err.startswith(
        "actorlearner: error: RUN_DIR|POLICY_DIR|CHECKPOINT: 'cut' cannot be loaded: "
    )
    assert ended.err.count("\n") == 1


def test_a_policy_carries_its_runs_configuration(run: Path) -> None:
    for policy in (run / "policies").iterdir():
        assert (policy / "assets.extra" / "config.yaml").read_text() == (run / "config.yaml").read_text()
        assert tf.saved_model.contains_saved_model(str(policy))
