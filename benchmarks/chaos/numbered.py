"""An environment whose env steps are numbered, so that each transition can be followed into replay.

An observation holds integers below 2**24 as multiples of 2**-24: exact in float32, and small enough for any
network. They are the identity of the environment, which no other has, the number of the env step that it is
acted on in, and the number of the episode.

Every env step is also recorded in a file of the environment's own, before the environment returns its result.
These records survive the death of the process.
"""

import dataclasses
import itertools
import os
import secrets
import struct
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

SUITE = "benchmarks.chaos.numbered_environment:make"
"""Names the environment, which is not imported from here: TF-Agents would come with it."""

_SCALE = 2.0**-24
_BITS = 24
_RECORD = struct.Struct("<dq")
_RECORD_DTYPE = np.dtype([("time", "<f8"), ("number", "<i8")])
_SUFFIX = ".steps"
_EPISODE_LENGTHS = (5, 60)

_ordinals = itertools.count()
"""Counts the environments of this process."""


@dataclasses.dataclass(frozen=True)
class Produced:
    """The env steps of one environment.

    Attributes:
      pid: of its process.
      identity: of the environment, below 2**48.
      times: Unix seconds of each env step; the first has the number 0.
    """

    pid: int
    identity: int
    times: npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Numbers:
    """The content of observations, one element each."""

    identity: npt.NDArray[np.int64]
    number: npt.NDArray[np.int64]
    episode: npt.NDArray[np.int64]


def observation(identity: int, number: int, episode: int) -> npt.NDArray[np.float32]:
    """Returns the observation, float32 [4]."""
    parts = (identity >> _BITS, identity % 2**_BITS, number, episode)
    return np.array([part * _SCALE for part in parts], np.float32)


def read_observations(observations: npt.NDArray[np.float32]) -> Numbers:
    """Reads observations [batch, 4] back."""
    parts = np.rint(observations.astype(np.float64) / _SCALE).astype(np.int64)
    return Numbers((parts[:, 0] << _BITS) + parts[:, 1], parts[:, 2], parts[:, 3])


def read_produced(directory: Path) -> list[Produced]:
    """Reads the records in `directory` of all environments that have taken an env step."""
    produced = []
    for path in sorted(directory.glob(f"*{_SUFFIX}")):
        pid, _, identity = path.name.removesuffix(_SUFFIX).split("-")
        complete = path.stat().st_size // _RECORD.size
        records = np.fromfile(path, _RECORD_DTYPE, count=complete)
        assert np.array_equal(records["number"], np.arange(complete)), path
        produced.append(Produced(int(pid), int(identity, 16), records["time"]))
    return produced


class Pace:
    """Slows down the env steps of a process to a minimum interval, like a slow simulator."""

    def __init__(self, interval_s: float) -> None:
        """The first env step may come at once."""
        self._interval_s = interval_s
        self._due = 0.0

    def wait(self) -> None:
        """Blocks until the next env step is due. Lost time is not made up for."""
        time.sleep(max(0.0, self._due - time.monotonic()))
        self._due = max(self._due, time.monotonic()) + self._interval_s


class Steps:
    """The numbers of one environment, and the file in which it records them."""

    def __init__(self, directory: Path) -> None:
        """Makes no file before the first env step."""
        self.identity = secrets.randbits(2 * _BITS)
        self.number = 0
        self.episode = 0
        self._left = 0
        self._path = directory / f"{os.getpid()}-{next(_ordinals)}-{self.identity:012x}{_SUFFIX}"
        self._file: int | None = None

    @property
    def observation(self) -> npt.NDArray[np.float32]:
        """The observation to act on next, float32 [4]."""
        return observation(self.identity, self.number, self.episode)

    def begin_episode(self) -> None:
        """Begins the next episode and chooses its length."""
        self.episode += 1
        least, most = _EPISODE_LENGTHS
        self._left = least + (self.identity + 17 * self.episode) % (most - least + 1)

    def take(self) -> bool:
        """Takes an env step and records it; returns whether it ends the episode."""
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(self._file, _RECORD.pack(time.time(), self.number))
        self.number += 1
        self._left -= 1
        return self._left == 0

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
