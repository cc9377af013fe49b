"""The command that films episodes of a saved policy."""

from pathlib import Path

from actorlearner import flags
from actorlearner.commands.command import Command, Flag, Options
from actorlearner.commands.played import ARGUMENTS, SEED, episodes, played_policy
from actorlearner.playing.foreground import own_output
from actorlearner.run_directory import obstacle

_ENDING = ".mp4"


def _video(options: Options, problems: list[str]) -> int:
    out = _out(options, problems)
    source = played_policy(options, problems)
    with own_output() as terminal:  # TensorFlow prints when it is imported.
        from actorlearner.playing.film import run_video

        return run_video(source, options["episodes"], options["fps"], out, options["seed"], terminal)


def _out(options: Options, problems: list[str]) -> str | None:
    """Returns the file that was asked for, if any; what is in the way of it goes to the problems."""
    out: str | None = options.get("out")
    if out is None:
        return None
    path = Path(out)
    if path.suffix != _ENDING:
        wrong = f"its name does not end with {_ENDING}"
    elif path.is_dir():
        wrong = "it is a directory"
    else:
        wrong = obstacle(str(path.parent))
    if wrong:
        problems.append(f"--out: {out!r} cannot be used ({wrong}); allowed: a file NAME{_ENDING}")
    return out


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
