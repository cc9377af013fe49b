"""Finds the saved policy that a path names, without TensorFlow."""

import contextlib
import dataclasses
from collections.abc import Collection, Sequence
from pathlib import Path

from actorlearner.agents.configuration import load_config
from actorlearner.config.checks import can_be_looked_up, imports_own_code
from actorlearner.config.schema import Config
from actorlearner.environments.checks import environment_problems
from actorlearner.environments.quiet import quiet_output
from actorlearner.errors import ConfigurationError
from actorlearner.records.run_directory import CONFIG_IN_POLICY, RunDirectory

POLICY_ARGUMENT = "RUN_DIR|POLICY_DIR|CHECKPOINT"
"""The name of the argument for a saved policy, in help texts and error messages."""

_SAVED_MODEL = "saved_model.pb"
_INDEX = ".index"
_FORMS = (
    "a run directory, a policy's directory such as RUN_DIR/policies/greedy_policy, or a checkpoint such as"
)
_EXAMPLE = "RUN_DIR/checkpoints/learner/ckpt-10000"


@dataclasses.dataclass(frozen=True)
class PolicySource:
    """A saved policy.

    Attributes:
      path: the directory of a SavedModel; or a checkpoint, without the suffixes of its files.
      is_checkpoint: whether `path` is a checkpoint.
      config: the configuration of the policy's run.
      run: the run directory that contains it; None for a copy elsewhere.
    """

    path: Path
    is_checkpoint: bool
    config: Config
    run: RunDirectory | None


def find_policy(given: str) -> PolicySource:
    """Finds the policy that a path names.

    Args:
      given: a run directory (its best policy, or else its greedy one), the directory of a
        SavedModel, or a checkpoint of a learner.

    Raises:
      ConfigurationError: it is none of these, or its environment is not installed.
    """
    path = Path(given)
    checkpoint = path.with_name(path.name.removesuffix(_INDEX) or path.name) if path.name else path
    if (path / _SAVED_MODEL).is_file():
        return _saved_model(path, _run_above(path.absolute(), 2))
    if RunDirectory(path).holds_a_run:
        return _of_run(path)
    if path.name and checkpoint.with_name(checkpoint.name + _INDEX).is_file():
        return _checkpoint(checkpoint)
    raise ConfigurationError([_refusal(path, given)])


def _of_run(path: Path) -> PolicySource:
    run = RunDirectory(path)
    for policy in (path / "policies" / run.best_policy.name, path / "policies" / "greedy_policy"):
        if (policy / _SAVED_MODEL).is_file():
            return _saved_model(policy, run)
    raise ConfigurationError(
        [
            f"{POLICY_ARGUMENT}: {str(path)!r} is a run directory without a policy; its first is saved when "
            "training begins"
        ]
    )


def _saved_model(path: Path, run: RunDirectory | None) -> PolicySource:
    own = path / CONFIG_IN_POLICY
    if own.is_file():
        return PolicySource(path, is_checkpoint=False, config=_load(own), run=run)
    if run is not None:
        return PolicySource(path, is_checkpoint=False, config=_load(run.config), run=run)
    raise ConfigurationError(
        [
            f"{POLICY_ARGUMENT}: {str(path)!r} does not say in which environment it acts: it lacks "
            f"{CONFIG_IN_POLICY}, and lies in no run directory"
        ]
    )


def _checkpoint(path: Path) -> PolicySource:
    run = _run_above(path.absolute(), 3)
    if run is None:
        raise ConfigurationError(
            [
                f"{POLICY_ARGUMENT}: {str(path)!r} is a checkpoint outside of a run directory, so that its "
                f"agent is not known; allowed: {_EXAMPLE}"
            ]
        )
    return PolicySource(path, is_checkpoint=True, config=_load(run.config), run=run)


def _load(config: Path) -> Config:
    return load_config(str(config), (), (_environment_problems,))


def _environment_problems(config: Config, broken: Collection[str]) -> Sequence[str]:
    """Checks the environment; first configures TensorFlow, which the user's own code may use."""
    if imports_own_code(config.environment) and can_be_looked_up(config.environment):
        with quiet_output():
            from actorlearner.process.tensorflow_setup import limit_tensorflow

            with contextlib.suppress(RuntimeError):  # In a notebook, TensorFlow may be in use already.
                limit_tensorflow(threads=1)
    return environment_problems(config, broken)


def _run_above(path: Path, levels: int) -> RunDirectory | None:
    """Returns the run directory `levels` above a path, if there is one."""
    above = path.parents[levels - 1] if len(path.parents) >= levels else path
    run = RunDirectory(above)
    return run if run.holds_a_run else None


def _refusal(path: Path, given: str) -> str:
    wrong = "is none of a run, a policy and a checkpoint" if path.exists() else "does not exist"
    there = sorted((file.name.removesuffix(_INDEX) for file in path.parent.glob(f"ckpt-*{_INDEX}")), key=len)
    hint = f"; there are {', '.join(there)}" if there and not path.exists() else ""
    return f"{POLICY_ARGUMENT}: {given!r} {wrong}; allowed: {_FORMS} {_EXAMPLE}{hint}"
