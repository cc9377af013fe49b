"""Films episodes into an mp4 file with a still frame beside it."""

import contextlib
import math
from collections.abc import Generator
from fractions import Fraction
from pathlib import Path

import imageio.v3 as imageio
import imageio_ffmpeg
import numpy as np
import tree

from actorlearner.acting.episodes import EpisodeInPlay
from actorlearner.acting.policy_function import PolicyFunction
from actorlearner.environments.guarded import GuardedEnvironment
from actorlearner.environments.rendering import Frame, RenderError
from actorlearner.errors import one_line

_EVEN = 2  # H.264 with yuv420p needs even sizes; an odd frame is scaled by a pixel.
_ENCODER_S = 60.0


class VideoFile:
    """An H.264 video; its file appears only once it is complete.

    Attributes:
      path: the video file.
      still: the PNG file beside it, a frame of the second half.
      fps: frames per second.
      frames: number of frames written so far.
      size: width and height of the frames in pixels; (0, 0) before the first.
    """

    def __init__(self, path: Path, fps: int, threads: int = 0) -> None:
        """Prepares the video; writes nothing yet.

        Args:
          path: must end with .mp4; its directory is created if missing.
          fps: frames per second.
          threads: number of encoder threads; 0 means one per core.
        """
        self.path = path
        self.still = path.with_suffix(".png")
        self.fps = fps
        self.frames = 0
        self.size = (0, 0)
        self._fresh = path.with_name(f".{path.name}")  # ffmpeg infers the format from the ending.
        self._threads = threads
        self._encoder: Generator[None, Frame | None, None] | None = None
        self._picture: Frame | None = None

    def add(self, frame: Frame, copies: int) -> None:
        """Adds `copies` of a frame; blocks while the encoder is busy.

        Raises:
          RenderError: its size differs from the size of the frames before it.
          OSError: there is no encoder, or it failed.
        """
        size = (frame.shape[1], frame.shape[0])
        if self._encoder is None:
            self._encoder = self._begin(size)
        if size != self.size:
            raise RenderError(f"the frame size changed from {self.size} to {size} pixels")
        before = self.frames
        for _ in range(copies):
            self._encoder.send(frame)
            self.frames += 1
        # At each power of two: the last of these frames is in the second half of the video.
        if before.bit_length() < self.frames.bit_length():
            self._picture = frame

    def close(self) -> None:
        """Completes the video and moves it and its still frame into place; blocks until the encoder is done.

        Raises:
          OSError: it could not be written; its partial files are removed.
        """
        assert self._encoder is not None
        assert self._picture is not None
        try:
            self._encoder.close()
            self._check()
            still = self._fresh.with_suffix(".png")
            imageio.imwrite(still, self._picture)
            still.replace(self.still)
            self._fresh.replace(self.path)
        finally:
            self.discard()

    def discard(self) -> None:
        """Stops the encoder, which may take up to _ENCODER_S, and removes partial files."""
        if self._encoder is not None:
            with contextlib.suppress(OSError):  # The encoder has failed already.
                self._encoder.close()
        for left in (self._fresh, self._fresh.with_suffix(".png")):
            left.unlink(missing_ok=True)

    def _begin(self, size: tuple[int, int]) -> Generator[None, Frame | None, None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.size = size
        encoder: Generator[None, Frame | None, None] = imageio_ffmpeg.write_frames(
            self._fresh,
            size,
            fps=self.fps,
            quality=7,
            macro_block_size=_EVEN,
            ffmpeg_timeout=_ENCODER_S,
            output_params=["-threads", str(self._threads), "-movflags", "+faststart"],
        )
        try:
            encoder.send(None)
        except RuntimeError as error:  # There is no ffmpeg, or it has no encoder for H.264.
            raise OSError(f"the encoder cannot be started: {one_line(error)}") from error
        return encoder

    def _check(self) -> None:
        """Reads the file back, because imageio does not report whether the encoder succeeded."""
        try:
            written, _ = imageio_ffmpeg.count_frames_and_secs(self._fresh)
        except RuntimeError as error:
            raise OSError(f"the video was not written, see above: {self.path}") from error
        if written != self.frames:
            raise OSError(f"only {written} of {self.frames} frames were written to {self.path}")


class FilmedEpisode(EpisodeInPlay):
    """An episode that is added to a video while it is played, from its first state to its last.

    The video runs at the speed of the simulated world if the environment has a frame rate; otherwise each
    state is one frame. States that fall between two frames of the video are not rendered.
    """

    def __init__(
        self,
        environment: GuardedEnvironment,
        policy: PolicyFunction,
        video: VideoFile,
        max_steps: int | None = None,
    ) -> None:
        """Resets the environment and adds its first state to the video.

        Args:
          environment: where it is played.
          policy: for batches of one.
          video: to add to.
          max_steps: env steps after which the episode is cut off; None for no limit.

        Raises:
          RunError: the environment failed too often in a row.
          RenderError: the environment cannot render.
          OSError: the video cannot be written.
        """
        super().__init__(environment, max_steps)
        rate = environment.frame_rate or video.fps
        self._policy = policy
        self._video = video
        self._frames_per_state = video.fps / Fraction(rate).limit_denominator(1_000_000)
        self._states = 0
        self._film()

    def step(self) -> None:
        """Takes the next env step and adds the state that follows.

        Raises:
          RunError: the environment failed too often in a row.
          RenderError: the environment cannot render.
          OSError: the video cannot be written.
        """
        batch = tree.map_structure(lambda leaf: np.asarray(leaf)[None], self.observation)
        actions = self._policy(batch, np.array([self.length == 0]))
        self.act(tree.map_structure(lambda leaf: leaf[0], actions))
        if not self.failed:
            self._film()

    def _film(self) -> None:
        shown = math.ceil(self._states * self._frames_per_state)
        self._states += 1
        copies = math.ceil(self._states * self._frames_per_state) - shown
        if copies:
            self._video.add(self._environment.render(), copies)
