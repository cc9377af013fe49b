"""Saved policies for scripts and notebooks: load one, ask it for actions, play whole episodes."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from actorlearner.acting.policy_source import find_policy
from actorlearner.config.schema import Config
from actorlearner.environments.environment import Environment, Nest
from actorlearner.environments.guarded import GuardedEnvironment, load_guarded
from actorlearner.environments.load import adapt_environment
from actorlearner.process.stop import Stop

if TYPE_CHECKING:
    from actorlearner.acting.episodes import Episode
    from actorlearner.acting.policy_function import PolicyFunction

_ROLE = "rollout"


@dataclasses.dataclass(frozen=True)
class Policy:
    """A saved policy; calling it returns its action for one observation.

    Attributes:
      path: where it was saved.
      config: the experiment it was trained in.
      train_step: the train step after which it was saved.
      function: takes batches of one observation.
    """

    path: Path
    config: Config
    train_step: int
    function: "PolicyFunction"
    _dtypes: Nest

    def __call__(self, observation: Nest, first: bool = False) -> Nest:
        """Returns the action, a NumPy array (or nest of them) without a batch dimension.

        Args:
          observation: one observation of the environment, without a batch dimension.
          first: whether an episode begins with it; only policies with a memory ask for it.
        """
        import tree

        batch = tree.map_structure_up_to(
            self._dtypes, lambda dtype, leaf: np.asarray(leaf, dtype)[None], self._dtypes, observation
        )
        return tree.map_structure(lambda leaf: leaf[0], self.function(batch, np.array([first])))


def load_policy(path: str | Path) -> Policy:
    """Loads a saved policy. It takes seconds: TensorFlow is imported, and the environment is made once.

    Args:
      path: a run directory (its best policy, or else its greedy one), the directory of one policy, or a
        checkpoint of a learner such as RUN_DIR/checkpoints/learner/ckpt-10000.

    Raises:
      ConfigurationError: it is none of these, or the policy or its environment cannot be loaded.
    """
    source = find_policy(str(path))
    import tree

    from actorlearner.acting import saved_policy
    from actorlearner.environments.specs import load_specs

    specs = load_specs(source.config.environment)
    loaded = saved_policy.load_policy(source, specs)
    dtypes = tree.map_structure(lambda spec: spec.dtype.as_numpy_dtype, specs.observation)
    return Policy(source.path, source.config, loaded.train_step, loaded.function, dtypes)


def evaluate(
    policy: Policy,
    environment: Any = None,
    episodes: int = 20,
    seed: int = 0,
) -> list["Episode"]:
    """Plays whole episodes and returns the `reward` (the undiscounted return) and `length` of each.

    Args:
      policy: from `load_policy` or `Run.best_policy`.
      environment: a gym.Env, a TF-Agents PyEnvironment, or a callable that makes one; None for a new
        environment of the policy's own configuration.
      episodes: how many are played.
      seed: seeds the environment.

    Raises:
      ConfigurationError: the environment cannot be made.
      RunError: the environment failed more often in a row than `environment.max_faults` allows.
    """
    from actorlearner.acting.episodes import play_episodes

    guarded = _guarded(policy.config, environment, seed)
    try:
        return play_episodes(guarded, policy.function, episodes, Stop()) or []
    finally:
        if environment is None or callable(environment):
            guarded.close()


def _guarded(config: Config, environment: Any, seed: int) -> GuardedEnvironment:
    if environment is None:
        return load_guarded(config.environment, seed, _ROLE, 0, 0)
    make: Callable[[], Any] = environment if callable(environment) else lambda: environment

    def adapted(attempt: int) -> Environment:
        adapter = adapt_environment(config.environment, make())
        adapter.seed(seed + attempt)
        return adapter

    return GuardedEnvironment(adapted, "the environment", config.environment.max_faults)
