"""The command: films episodes of a saved policy."""

from pathlib import Path
from typing import TextIO

import tensorflow as tf

from actorlearner.acting.episodes import Episode
from actorlearner.acting.film_episode import FilmedEpisode
from actorlearner.acting.policy_source import PolicySource
from actorlearner.acting.rollout import episode_environment, episode_line, title
from actorlearner.acting.saved_policy import LoadedPolicy, load_policy
from actorlearner.acting.video_file import VideoFile
from actorlearner.environments.rendering import RenderError
from actorlearner.environments.specs import load_specs
from actorlearner.errors import EXIT_FINISHED, ConfigurationError, RunError, one_line
from actorlearner.process.devices import use_cpu


def run_video(
    source: PolicySource, episodes: int, fps: int, out: Path | None, seed: int, terminal: TextIO
) -> int:
    """Films and prints what it does; returns the exit code. The episodes are those of `run_rollout`.

    Args:
      source: the policy, and the experiment that it is from.
      episodes: how many.
      fps: frames a second of the video.
      out: the mp4 file; None for one in the run directory, or else in the working directory.
      seed: of the environments, of each episode another.
      terminal: where it is printed.

    Raises:
      ConfigurationError: the policy or the environment cannot be loaded, or the environment cannot draw.
      RunError: the environment failed too often in a row, or the video cannot be written.
    """
    use_cpu(threads=1)
    tf.random.set_seed(seed)
    policy = load_policy(source, load_specs(source.config.environment))
    print(title(source, policy.train_step), file=terminal)
    video = VideoFile(out or _default(source, policy.train_step), fps)
    try:
        for number in range(episodes):
            episode = _film(source, policy, video, seed, number)
            print(episode_line(number, episode), file=terminal)
        video.close()
    except RenderError as error:
        name = source.config.environment.name or source.config.environment.suite
        raise ConfigurationError([f"environment.name: {name!r} cannot be filmed: {error}"]) from error
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


def _film(source: PolicySource, policy: LoadedPolicy, video: VideoFile, seed: int, number: int) -> Episode:
    """Films one whole episode; what there is of one that the environment failed in stays in the video."""
    environment = episode_environment(source, seed, number)
    try:
        while True:
            episode = FilmedEpisode(environment, policy.function, video)
            while not episode.over:
                episode.step()
            if not episode.failed:
                return Episode(episode.reward, episode.length)
    finally:
        environment.close()


def _default(source: PolicySource, train_step: int) -> Path:
    """Names the video after the policy and its train step, which a checkpoint's name has already."""
    name = source.path.name if source.is_checkpoint else f"{source.path.absolute().name}-{train_step}"
    folder = Path() if source.run is None else source.run.videos
    return folder / f"{name}.mp4"
