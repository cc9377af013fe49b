"""Films policies during training, while the eval actor waits for the next one."""

import logging
import time
from collections.abc import Callable, Generator

from actorlearner.acting.filming import FilmedEpisode, VideoFile
from actorlearner.acting.policy_function import PolicyFunction
from actorlearner.config.schema import Config
from actorlearner.environments.guarded import load_guarded
from actorlearner.environments.rendering import RenderError
from actorlearner.errors import ConfigurationError, RunError, one_line
from actorlearner.process.heartbeat import LONG_PATIENCE_S, beat
from actorlearner.process.role_names import EVAL_ACTOR
from actorlearner.records.notify import warn
from actorlearner.records.run_directory import RunDirectory
from actorlearner.variables.container import PolicyVariables

_log = logging.getLogger(__name__)

_FPS = 30


class TrainingVideos:
    """Films one episode every `evaluate.video_interval` train steps, into videos/<train step>.mp4.

    It has its own environment and works in short slices, so that evaluations need not wait for it. A video
    that fails is skipped with a one-line warning; if the environment cannot render, no more are made.
    """

    def __init__(
        self,
        directory: RunDirectory,
        config: Config,
        policy: PolicyFunction,
        update: Callable[[PolicyVariables], None],
    ) -> None:
        """Continues after the videos of a previous eval actor and removes its unfinished one.

        Args:
          directory: the run directory.
          config: the run's configuration.
          policy: the greedy policy, for batches of one; nothing else may call it.
          update: assigns policy variables to its variables.
        """
        self._folder = directory.videos
        self._config = config
        self._policy = policy
        self._update = update
        self._interval = config.evaluate.video_interval
        self._version: PolicyVariables | None = None
        self._filming: Generator[None, None, None] | None = None
        self._warned = False
        for left in self._folder.glob(".[0-9]*"):
            left.unlink()
        self._filmed = [int(path.stem) for path in self._folder.glob("*.mp4") if path.stem.isdigit()]

    @property
    def pending(self) -> bool:
        """Whether a video is unfinished."""
        return self._filming is not None

    def begin(self, version: PolicyVariables) -> None:
        """Starts a video of a policy if one is due and no other is unfinished.

        A restarted learner takes train steps again: videos of these train steps are filmed again.
        """
        train_step = version.train_step
        before = max((filmed for filmed in self._filmed if filmed < train_step), default=-1)
        if self._interval is None or train_step // self._interval <= before // self._interval:
            return
        if self.pending:
            _log.info("no video of train step %d: the previous one is unfinished", train_step)
            if not self._warned:
                self._warned = True
                warn(
                    f"no video of train step {train_step:,}, because the previous one is unfinished; later "
                    "ones may be skipped, too; raise evaluate.video_interval"
                )
            return
        self._version = version
        self._filming = self._film(train_step)
        self._filmed.append(train_step)

    def work(self, seconds: float) -> None:
        """Works on the unfinished video, if any, for about `seconds`; overwrites the policy's variables."""
        if self._version is None or self._filming is None:
            return
        until = time.monotonic() + seconds
        try:
            self._update(self._version)
            for _ in self._filming:
                if time.monotonic() >= until:
                    return
        except (RenderError, OSError, RunError, ConfigurationError) as error:
            more = ""
            if isinstance(error, RenderError):
                self._interval, more = None, ", and no more videos in this run"
            warn(f"no video of train step {self._version.train_step:,}{more}: {one_line(error)}")
        self._version = self._filming = None

    def discard(self) -> None:
        """Discards the unfinished video, if any."""
        if self._filming is not None:
            self._filming.close()
        self._version = self._filming = None

    def _film(self, train_step: int) -> Generator[None, None, None]:
        """Films one episode, and yields after each env step; if it is closed, no video remains."""
        config = self._config
        environment = load_guarded(
            config.evaluated_environment, config.seed, EVAL_ACTOR, 0, 0, purpose="video"
        )
        video = VideoFile(self._folder / f"{train_step}.mp4", _FPS, threads=1)
        try:
            complete = False
            while not complete:
                episode = FilmedEpisode(environment, self._policy, video, config.evaluate.max_steps)
                yield
                while not episode.over:
                    beat("filming, env step", episode.length, LONG_PATIENCE_S)
                    episode.step()
                    yield
                complete = not episode.failed
            video.close()
            _log.info("video of train step %d: %s", train_step, video.path)
        finally:
            video.discard()
            environment.close()
