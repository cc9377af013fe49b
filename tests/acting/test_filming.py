"""Films run in the time of the simulated world, and training goes on without those that cannot be made."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import gym
import numpy as np
import pytest

from actorlearner.acting.filming import FilmedEpisode, VideoFile
from actorlearner.acting.training_videos import TrainingVideos
from actorlearner.config.schema import Config, EnvironmentConfig, EvaluateConfig
from actorlearner.environments.guarded import GuardedEnvironment, load_guarded
from actorlearner.environments.rendering import RenderError
from actorlearner.records.run_directory import RunDirectory
from actorlearner.variables.container import PolicyVariables
from tests.acting.test_video_file import read

LENGTH = 12


class Clock(gym.Env):
    """Its pictures show the env step; an episode has LENGTH of them."""

    observation_space = gym.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, rate: float | None, draws: bool = True) -> None:
        self.metadata = {"render_fps": rate}
        self.draws = draws

    def reset(self) -> np.ndarray:
        self.time = 0
        return np.zeros(1, np.float32)

    def step(self, action: int) -> tuple:
        self.time += 1
        return np.zeros(1, np.float32), 1.0, self.time == LENGTH, {}

    def render(self, mode: str) -> np.ndarray | None:
        return np.full((32, 32, 3), 20 * self.time, np.uint8) if self.draws else None


def environment_of(rate: float | None, draws: bool = True) -> EnvironmentConfig:
    suite = f"{__name__}:Clock"
    return EnvironmentConfig(suite=suite, name="", kwargs={"rate": rate, "draws": draws})


def clock(rate: float | None) -> GuardedEnvironment:
    return load_guarded(environment_of(rate), 0, "test", 0, 0)


def act(observations: np.ndarray, first: np.ndarray) -> np.ndarray:
    return np.zeros(1, np.int64)


@pytest.mark.parametrize(
    ("rate", "fps", "shown"),
    [
        (None, 30, [*range(LENGTH + 1)]),  # A frame is a state.
        (10, 10, [*range(LENGTH + 1)]),
        (10, 20, [state for state in range(LENGTH + 1) for _ in range(2)]),
        (10, 15, [0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 8, 8, 9, 10, 10, 11, 12, 12]),
        (10, 4, [0, 2, 5, 7, 10, 12]),
        (1000, 1, [0]),
    ],
)
def test_a_video_runs_in_simulated_time(
    tmp_path: Path, rate: float | None, fps: int, shown: list[int]
) -> None:
    video = VideoFile(tmp_path / "a.mp4", fps)
    episode = FilmedEpisode(clock(rate), act, video)
    while not episode.over:
        episode.step()
    assert (episode.episode_return, episode.length) == (LENGTH, LENGTH)
    video.close()
    facts, means = read(video.path)
    assert facts["fps"] == fps
    assert [round(mean / 20) for mean in means] == shown


@pytest.fixture(name="videos")
def _videos(tmp_path: Path) -> Callable[..., TrainingVideos]:
    """Makes the videos of a run, one every 100 train steps."""

    def make(draws: bool = True) -> TrainingVideos:
        evaluate = EvaluateConfig(video_interval=100)
        config = dataclasses.replace(Config(), environment=environment_of(15, draws), evaluate=evaluate)
        return TrainingVideos(RunDirectory(tmp_path), config, act, lambda version: None)

    return make


def film(videos: TrainingVideos, train_step: int) -> None:
    videos.begin(PolicyVariables(train_step, []))
    while videos.pending:
        videos.work(0.0001)  # In several goes.


def test_one_video_is_filmed_in_each_interval(videos: Callable[..., TrainingVideos], tmp_path: Path) -> None:
    first = videos()
    for train_step in (0, 40, 80, 120, 160, 240):
        film(first, train_step)
    first.begin(PolicyVariables(310, []))
    first.work(0.0001)
    first.begin(PolicyVariables(420, []))  # The one before is still being made.
    first.discard()
    assert not list((tmp_path / "videos").glob(".310*")), "an unfinished video is removed"
    film(first, 460)
    (tmp_path / "videos" / ".999.mp4").touch()  # Of one that was killed.
    (tmp_path / "videos" / ".best-7.mp4").touch()  # A command that films has it.
    film(videos(), 480)
    film(videos(), 500)
    (tmp_path / "videos" / ".best-7.mp4").unlink()
    found = sorted(path.name for path in (tmp_path / "videos").iterdir())
    names = [0, 120, 240, 460, 500]
    assert found == sorted(f"{name}.{ending}" for name in names for ending in ("mp4", "png"))
    facts, means = read(tmp_path / "videos" / "120.mp4")
    assert facts["fps"] == 30
    assert len(means) == 2 * (LENGTH + 1)


def test_train_steps_that_are_taken_again_are_filmed_again(
    videos: Callable[..., TrainingVideos], tmp_path: Path
) -> None:
    def written(train_step: int) -> int:
        return (tmp_path / "videos" / f"{train_step}.mp4").stat().st_mtime_ns

    first = videos()
    for train_step in (0, 100, 200, 300):
        film(first, train_step)
    before = {train_step: written(train_step) for train_step in (100, 200, 300)}
    film(first, 150)  # The learner has rolled back to train step 100.
    film(first, 200)
    film(videos(), 300)
    assert [train_step for train_step, at in before.items() if written(train_step) > at] == [200, 300]
    assert not (tmp_path / "videos" / "150.mp4").exists()


def test_skipped_videos_cause_one_warning(
    videos: Callable[..., TrainingVideos], caplog: pytest.LogCaptureFixture
) -> None:
    slow = videos()
    slow.begin(PolicyVariables(0, []))
    for train_step in (100, 200, 300):
        slow.begin(PolicyVariables(train_step, []))
    slow.discard()
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "no video of train step 100, because the previous one is unfinished; later ones may be skipped, too; "
        "raise evaluate.video_interval"
    ]


def test_an_environment_that_cannot_render_causes_one_warning(
    videos: Callable[..., TrainingVideos], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    without = videos(draws=False)
    with caplog.at_level("INFO", "actorlearner"):
        for train_step in (0, 100, 200):
            film(without, train_step)
    assert [record.getMessage() for record in caplog.records] == [
        "no video of train step 0, and no more videos in this run: RenderError: its render(mode='rgb_array') "
        "returned no picture (uint8[height, width, 3])"
    ]
    assert not (tmp_path / "videos").exists()
    with pytest.raises(RenderError):
        load_guarded(environment_of(1, draws=False), 0, "test", 0, 0).render()


def test_a_filmed_episode_is_cut_off_after_max_steps(tmp_path: Path) -> None:
    episode = FilmedEpisode(clock(None), act, VideoFile(tmp_path / "a.mp4", 30), max_steps=4)
    while not episode.over:
        episode.step()
    assert episode.length == 4
