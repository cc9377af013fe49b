"""The command that films episodes of a saved policy."""

from actorlearner import flags
from actorlearner.commands.command import Command, Flag, Options
from actorlearner.commands.out import given_out
from actorlearner.commands.played import ARGUMENTS, SEED, episodes, played_policy
from actorlearner.playing.foreground import own_output

_ENDING = ".mp4"


def _video(options: Options, problems: list[str]) -> int:
    out = given_out(options, problems, _ENDING)
    source = played_policy(options, problems)
    with own_output() as terminal:  # TensorFlow prints when it is imported.
        from actorlearner.playing.film import run_video

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
