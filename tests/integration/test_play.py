"""Playing and filming the results of a run: its best policy, a copy of a policy, and a checkpoint."""

import os
import re
import shutil
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
import tensorflow as tf

from actorlearner.acting.best_record import BestRecord, read_best
from actorlearner.acting.episodes import play_episodes
from actorlearner.acting.policy_source import find_policy
from actorlearner.acting.saved_policy import load_source
from actorlearner.environments.guarded import load_guarded
from actorlearner.environments.specs import environment_specs
from actorlearner.process.stop import Stop
from tests.support.processes import REPOSITORY, TINY_RUN, Command, records

pytestmark = pytest.mark.integration

_EPISODES = 8


@pytest.fixture(name="run", scope="module")
def _run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run that has finished."""
    folder = tmp_path_factory.mktemp("play")
    settings = ("learn.train_steps=1000", "evaluate.interval=500", f"evaluate.episodes={_EPISODES}")
    local = (
        "local",
        "--config",
        str(REPOSITORY / "configs" / "td3_pendulum.yaml"),
        "--run_dir",
        "run",
        "--set",
    )
    ended = actorlearner(
        folder, *local, *TINY_RUN, *settings, "evaluate.video_interval=1000", "collect.actors=1"
    )
    assert ended.process.returncode == 0, ended.err
    (folder / "printed").write_text(ended.out)
    return folder / "run"


def actorlearner(folder: Path, *arguments: str, fresh: bool = False) -> Command:
    """Runs a command to its end."""
    left_out = (
        "DISPLAY",
        "TF_CPP_MIN_LOG_LEVEL",
    )  # TensorFlow may print, and there is no display, as on many users' machines.
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    command = Command(
        ("-m", "actorlearner", *arguments), folder, environment | {"PYTHONPATH": str(REPOSITORY)}, fresh=fresh
    )
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
    environment = load_guarded(source.config.environment, source.config.seed, "eval-actor, best policy", 0, 0)
    policy = load_source(source, environment_specs(environment))
    episodes = play_episodes(source.config, [environment], policy.function, _EPISODES, Stop())
    fresh = facts_of(run).fresh
    assert episodes is not None
    assert fresh is not None
    # The last digits of a sum depend on the threads that it is shared among.
    np.testing.assert_allclose([episode.episode_return for episode in episodes], fresh.returns, rtol=0.01)


def test_a_rollout_agrees_with_what_was_recorded(run: Path) -> None:
    title, *lines, mean = rollout(run.parent, "run", "--episodes", str(_EPISODES))
    facts = facts_of(run)
    assert title == f"policy run/policies/best, train step {facts.train_step:,}, in Pendulum-v1"
    assert len(lines) == _EPISODES
    for i, line in enumerate(lines):
        assert re.fullmatch(rf"Episode #{i}: reward: -\d+\.\d+, length: 200", line), line
    match = re.fullmatch(r"mean of 8: reward: (.+) ± (.+), length: 200.0 ± 0.0", mean)
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
    ended = actorlearner(tmp_path, *video, fresh=True)
    assert (ended.process.returncode, ended.err) == (0, "")
    assert "video: a/b.mp4, 500x500, 10.1 s, 15 frames a second\nstill: a/b.png\n" in ended.out
    check_video(tmp_path / "a" / "b.mp4", 15, 151)  # 201 states, one in 0.05 s of Pendulum-v1's world.


def test_training_was_filmed(run: Path) -> None:
    """The video of train step 1,000 is skipped if the previous one is unfinished."""
    videos = sorted(path.stem for path in (run / "videos").glob("*.mp4"))
    assert videos in (["0"], ["0", "1000"])
    assert sorted(path.stem for path in (run / "videos").glob("*.png")) == videos
    left_out = "no video of train step 1000: the previous one is unfinished"
    assert (left_out in (run / "logs" / "eval-actor.log").read_text()) == (videos == ["0"])
    for train_step in videos:
        check_video(run / "videos" / f"{train_step}.mp4", 30, 302)


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
