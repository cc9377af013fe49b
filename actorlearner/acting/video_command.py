"""The command `video`: films episodes of a saved policy."""

from pathlib import Path
from typing import TextIO

import tensorflow as tf

from actorlearner.acting.episodes import PlayedEpisode
from actorlearner.acting.filming import FilmedEpisode, VideoFile
from actorlearner.acting.policy_source import PolicySource
from actorlearner.acting.rollout_command import episode_line, title
from actorlearner.acting.saved_policy import Policy, episode_environment, load_source
from actorlearner.environments.rendering import RenderError
from actorlearner.environments.specs import load_specs
from actorlearner.errors import EXIT_FINISHED, ConfigurationError, RunError, one_line
from actorlearner.process.tensorflow_setup import limit_tensorflow


def run_video(
    source: PolicySource, episodes: int, fps: int, out: Path | None, seed: int, terminal: TextIO
) -> int:
    """Films the episodes of `run_rollout`, prints them, and returns the exit code.

    Args:
      source: the policy and its configuration.
      episodes: the number of episodes.
      fps: frames per second of the video.
      out: the mp4 file; None for a file in the run directory, or in the working directory outside of a run.
      seed: seeds the environments; each episode gets its own random numbers.
      terminal: the stream to print to.

    Raises:
      ConfigurationError: the policy or the environment cannot be loaded, or the environment cannot render.
      RunError: the environment failed too often in a row, or the video cannot be written.
    """
    limit_tensorflow(threads=1)
    tf.random.set_seed(seed)
    policy = load_source(source, load_specs(source.config.evaluated_environment))
    print(title(source, policy.train_step), file=terminal)
    video = VideoFile(out or _default(source, policy.train_step), fps)
    try:
        for number in range(episodes):
            episode = _film(source, policy, video, seed, number)
            print(episode_line(number, episode), file=terminal)
        video.close()
    except RenderError as error:
        key = "name" if source.config.environment.name else "suite"
        value = getattr(source.config.environment, key)
        raise ConfigurationError([f"environment.{key}: {value!r} cannot be filmed: {error}"]) from error
    except OSError as error:
        raise RunError(f"the video cannot be written to {video.path}: {one_line(error)}") from error
    finally:
        video.discard()
    width, height = video.size
    print(
        f"video: {video.path}, {width}x{height}, {video.frames / fps:.1f} s, {fps} frames a second\n"
        f"still: {video.still}",
        file=terminal,
    )
    return EXIT_FINISHED


def _film(source: PolicySource, policy: Policy, video: VideoFile, seed: int, number: int) -> PlayedEpisode:
    """Films one episode; episodes in which the environment failed stay in the video."""
    environment = episode_environment(source.config, seed, number)
    try:
        while True:
            episode = FilmedEpisode(environment, policy.function, video, source.config.evaluate.max_steps)
            while not episode.over:
                episode.step()
            if not episode.failed:
                return episode.result()
    finally:
        environment.close()


def _default(source: PolicySource, train_step: int) -> Path:
    """Names the video after the policy and its train step, which a checkpoint's name already contains."""
    name = source.path.name if source.is_checkpoint else f"{source.path.absolute().name}-{train_step}"
    folder = Path() if source.run is None else source.run.videos
    return folder / f"{name}.mp4"
