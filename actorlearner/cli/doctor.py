"""The command that checks a machine."""

from actorlearner.cli.command import Options
from actorlearner.cli.configured import configured
from actorlearner.config.problems import Sources
from actorlearner.config.schema import Config


def _doctor(config: Config, sources: Sources, run_dir: str | None, experiment: str, options: Options) -> int:
    from actorlearner.inspect.doctor.run_checks import run_doctor

    return run_doctor(config, run_dir)


DOCTOR = configured(
    "check whether this machine can train",
    "Checks the platform, the installed versions, GPUs, network, environment, memory, disk and a round "
    "trip through replay, one line each: ok, warn, or FAIL with what to do. Exit code 1 if any fails.",
    "--config sac_minitaur --run_dir /data/runs/minitaur",
    _doctor,
    {},
    config="sac_pendulum",
    needs_numpy=False,
)
