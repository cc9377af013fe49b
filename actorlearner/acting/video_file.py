"""Writes an mp4 file, and a still frame beside it."""

import contextlib
from collections.abc import Generator
from pathlib import Path

import imageio.v3 as imageio
import imageio_ffmpeg

from actorlearner.environments.rendering import Frame, RenderError

_EVEN = 2  # H.264 with yuv420p has even sizes; others are scaled by a pixel.
_ENCODER_S = 60.0


class VideoFile:
    """An H.264 video that is there whole or not at all.

    Attributes:
      path: of the video.
      still: of the PNG picture beside it, a frame of its second half.
      fps: frames a second.
      frames: written so far.
      size: width and height of its frames; (0, 0) before the first.
    """

    def __init__(self, path: Path, fps: int, threads: int = 0) -> None:
        """Writes nothing yet.

        Args:
          path: ends with .mp4; its directory is made.
          fps: frames a second.
          threads: of the encoder; 0 for one of each core.
        """
        self.path = path
        self.still = path.with_suffix(".png")
        self.fps = fps
        self.frames = 0
        self.size = (0, 0)
        self._fresh = path.with_name(f".{path.name}")  # ffmpeg tells the format by the ending.
        self._threads = threads
        self._encoder: Generator[None, Frame | None, None] | None = None
        self._picture: Frame | None = None

    def add(self, frame: Frame, copies: int) -> None:
        """Adds a frame, so often; blocks while the encoder is busy.

        Raises:
          RenderError: it has another size than those before.
          OSError: the encoder failed.
        """
        size = (frame.shape[1], frame.shape[0])
        if self._encoder is None:
            self._encoder = self._begin(size)
        if size != self.size:
            raise RenderError(f"its pictures were {self.size} pixels large and are {size} now")
        before = self.frames
        for _ in range(copies):
            self._encoder.send(frame)
            self.frames += 1
        if before.bit_length() < self.frames.bit_length():  # The last such frame is beyond the middle.
            self._picture = frame

    def close(self) -> None:
        """Finishes the file and puts it into its place, with the still frame; takes a moment.

        Raises:
          OSError: it could not be written whole, and then nothing is left of it.
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
        """Ends the encoder and removes what is not whole."""
        if self._encoder is not None:
            with contextlib.suppress(OSError):  # It has failed already.
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
        encoder.send(None)
        return encoder

    def _check(self) -> None:
        """Reads the file back: whether the encoder succeeded is not told."""
        try:
            there, _ = imageio_ffmpeg.count_frames_and_secs(self._fresh)
        except RuntimeError as error:
            raise OSError(f"the video was not written, see above: {self.path}") from error
        if there != self.frames:
            raise OSError(f"{there} of {self.frames} frames were written to {self.path}")
