"""Videos that ffmpeg reads back as they were written, or none."""

from pathlib import Path

import imageio.v3 as imageio
import imageio_ffmpeg
import numpy as np
import pytest

from actorlearner.acting.filming import VideoFile
from actorlearner.environments.rendering import RenderError
from tests.support.full_disk import fill, small_disk


def picture(value: int, height: int = 64, width: int = 96) -> np.ndarray:
    return np.full((height, width, 3), value, np.uint8)


def write_noise(video: VideoFile) -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        video.add(random.integers(0, 255, (480, 640, 3), np.uint8), 1)
    video.close()


def read(path: Path) -> tuple[dict, np.ndarray]:
    """What ffmpeg says of a video, and the mean of each of its frames."""
    reader = imageio_ffmpeg.read_frames(str(path))
    facts = next(reader)
    return facts, np.array([np.frombuffer(frame, np.uint8).mean() for frame in reader])


def test_a_video_has_the_frames_that_were_added(tmp_path: Path) -> None:
    video = VideoFile(tmp_path / "new" / "a.mp4", fps=25)
    for value, copies in ((0, 10), (100, 3), (200, 12)):
        video.add(picture(value), copies)
    assert not video.path.exists()
    video.close()
    facts, means = read(video.path)
    assert facts["fps"] == 25
    assert facts["size"] == (96, 64)
    assert facts["duration"] == 1.0
    np.testing.assert_allclose(means, [0] * 10 + [100] * 3 + [200] * 12, atol=3)
    np.testing.assert_array_equal(imageio.imread(video.still), picture(200))
    assert sorted(path.name for path in video.path.parent.iterdir()) == ["a.mp4", "a.png"]


def test_frames_of_odd_sizes_are_scaled_by_a_pixel(tmp_path: Path) -> None:
    video = VideoFile(tmp_path / "a.mp4", fps=10)
    video.add(picture(50, height=33, width=51), 5)
    video.close()
    facts, means = read(video.path)
    assert facts["size"] == (52, 34)
    np.testing.assert_allclose(means, [50] * 5, atol=3)


def test_a_frame_of_another_size_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    video = VideoFile(tmp_path / "a.mp4", fps=10)
    video.add(picture(1), 1)
    with pytest.raises(RenderError, match=r"\(96, 64\).*\(96, 32\)"):
        video.add(picture(1, height=32), 1)
    video.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_missing_encoder_is_an_error_of_the_video(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def find() -> str:
        raise RuntimeError("No ffmpeg exe could be found.")

    monkeypatch.setattr("imageio_ffmpeg._io.get_ffmpeg_exe", find)
    video = VideoFile(tmp_path / "a.mp4", fps=10)
    with pytest.raises(OSError, match="No ffmpeg exe could be found"):
        video.add(picture(1), 1)
    video.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_keeps_the_video_that_was_there(tmp_path: Path) -> None:
    with small_disk(tmp_path, mebibytes=4) as disk:
        (disk / "a.mp4").write_bytes(b"before")
        filler = fill(disk)
        video = VideoFile(disk / "a.mp4", fps=10)
        with pytest.raises(OSError, match=r"a\.mp4|[Ff]fmpeg|[Pp]ipe"):
            write_noise(video)
        video.discard()
        assert (disk / "a.mp4").read_bytes() == b"before"
        assert {path.name for path in disk.iterdir()} == {"a.mp4", filler.name}
