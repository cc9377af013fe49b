"""The command that films episodes of a saved policy."""

from actorlearner.acting.own_output import own_output
from actorlearner.cli import flags
from actorlearner.cli.command import Command, Flag, Options
from actorlearner.cli.out import given_out
from actorlearner.cli.saved_policy import ARGUMENTS, SEED, episodes, played_policy

_ENDING = ".mp4"


def _video(options: Options, problems: list[str]) -> int:
    out = given_out(options, problems, _ENDING)
    source = played_policy(options, problems)
    with own_output() as terminal:  # TensorFlow prints when it is imported.
        from actorlearner.acting.video import run_video

        return run_video(source, options["episodes"], options["fps"], out, options["seed"], terminal)


VIDEO = Command(
    "film episodes of a saved policy",
    "Plays whole episodes, those of rollout with the same seed, and writes them as an mp4 file with a "
    "still frame beside it as PNG. No display is needed. The video runs in the time of the simulated "
    "world where the environment tells it, else a frame is one env step.",
    "runs/sac_halfcheetah-20261121-063535 --episodes 1",
    _video,
    {
        "episodes": episodes(3),
        "fps": Flag("N", "frames a second of the video; default: 60", flags.count, default="60"),
        "out": Flag(
            "FILE",
            "the mp4 file; default: RUN_DIR/videos/POLICY-TRAIN_STEP.mp4, or here for a policy in no run",
            required=False,
        ),
        "seed": SEED,
    },
    ARGUMENTS,
)
