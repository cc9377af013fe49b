"""Films an episode, in the time of the simulated world."""

import math
from fractions import Fraction

from actorlearner.acting.episodes import EpisodeInPlay
from actorlearner.acting.policy_function import PolicyFunction
from actorlearner.acting.video_file import VideoFile
from actorlearner.environments.guarded import GuardedEnvironment


class FilmedEpisode(EpisodeInPlay):
    """See EpisodeInPlay: every state, from the first to the last, goes into a video.

    A state is shown for as long as it lasts where the environment tells how many env steps a second has; else
    for one frame. States between two frames of the video are not drawn.
    """

    def __init__(self, environment: GuardedEnvironment, policy: PolicyFunction, video: VideoFile) -> None:
        """Resets the environment and films its first state.

        Raises:
          RenderError: the environment cannot draw.
          OSError: the video cannot be written.
        """
        super().__init__(environment, policy)
        rate = environment.frame_rate or video.fps
        self._video = video
        self._frames_a_state = video.fps / Fraction(rate).limit_denominator(1_000_000)
        self._states = 0
        self._film()

    def step(self) -> None:
        """Takes the next env step and films what came of it.

        Raises:
          RunError: the environment failed too often in a row.
          RenderError: the environment cannot draw.
          OSError: the video cannot be written.
        """
        super().step()
        if not self.failed:
            self._film()

    def _film(self) -> None:
        shown = math.ceil(self._states * self._frames_a_state)
        self._states += 1
        copies = math.ceil(self._states * self._frames_a_state) - shown
        if copies:
            self._video.add(self._environment.render(), copies)
