"""The command that harms the roles of a local run on purpose."""

import re

from actorlearner.cli import flags
from actorlearner.cli.command import Flag, Options
from actorlearner.cli.configured import configured, holds_replay, starts_one_learner
from actorlearner.config.problems import Sources
from actorlearner.config.schema import Config
from actorlearner.environments.quiet import quiet_output
from benchmarks.chaos.schedule import LEAST_DURATION_S


def _chaos(config: Config, sources: Sources, run_dir: str | None, experiment: str, options: Options) -> int:
    with quiet_output():  # TensorFlow, which reads replay's checkpoints, prints when it is imported.
        from benchmarks.chaos.run_chaos import run_chaos

    return run_chaos(config, run_dir, experiment, duration=options["duration"], seed=options["seed"])


def _seconds(text: str) -> int:
    """Reads how long roles are harmed.

    Raises:
      ValueError: it is no whole number of seconds, or too short; the message says what is allowed.
    """
    if not re.fullmatch("[0-9]{1,6}", text) or int(text) < LEAST_DURATION_S:
        raise ValueError(f"an integer from {LEAST_DURATION_S}")
    return int(text)


CHAOS = configured(
    "kill, stop and cut off the roles of a local run, and see what is lost",
    "Runs local mode with numbered transitions while its roles are killed, stopped and cut off from the "
    "replay server. Says what each role's downtime was and what became of every transition; fails if "
    "one was lost or duplicated without a reason.",
    "--config sac_pendulum --duration 600 --seed 1",
    _chaos,
    {
        "duration": Flag(
            "S", f"seconds during which roles are harmed, at least {LEAST_DURATION_S}", _seconds
        ),
        "seed": Flag("N", "decides which role is harmed when", flags.index),
    },
    holds_replay,
    starts_one_learner("chaos"),
)
