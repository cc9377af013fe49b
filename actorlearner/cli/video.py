"""`video`: films episodes of a saved policy.

Plays whole episodes, those of rollout with the same seed, and writes them as an mp4 file with a still frame
beside it as PNG. No display is needed. The video runs in the time of the simulated world where the
environment reports its frame rate, else a frame is one env step.
"""

import argparse

from actorlearner.cli.arguments import add_count, add_policy, checked_out, checked_policy
from actorlearner.cli.command import Commands, add_command
from actorlearner.cli.own_output import own_output


def add_to(commands: Commands) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "video",
        _start,
        summary="film episodes of a saved policy",
        description=__doc__,
        example="runs/sac_halfcheetah-20261121-063535 --episodes 1",
    )
    add_policy(parser, episodes=3)
    # Each state of the episode is repeated until the next one: more frames would only fill the disk.
    add_count(parser, "--fps", "frames a second of the video, at most 1000", 60, at_most=1000)
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="the mp4 file; default: RUN_DIR/videos/POLICY-TRAIN_STEP.mp4, or here for a policy in no run",
    )


def _start(arguments: argparse.Namespace, problems: list[str]) -> int:
    out = checked_out(arguments.out, problems, ".mp4")
    source = checked_policy(arguments, problems)
    with own_output() as terminal:  # TensorFlow prints when it is imported.
        from actorlearner.acting.video_command import run_video

        return run_video(source, arguments.episodes, arguments.fps, out, arguments.seed, terminal)
