"""Loads saved policies and evaluates them, also in a notebook."""

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tree
from tf_agents.policies import greedy_policy

from actorlearner.acting.episodes import PlayedEpisode, play_episodes
from actorlearner.acting.policy_function import PolicyFunction
from actorlearner.acting.policy_source import POLICY_ARGUMENT, PolicySource, find_policy
from actorlearner.agents.make import make_agent, restore_agent
from actorlearner.config.schema import Config
from actorlearner.environments.environment import Nest
from actorlearner.environments.guarded import GuardedEnvironment, load_guarded
from actorlearner.environments.gym_adapter import GymAdapter
from actorlearner.environments.info import info_keys
from actorlearner.environments.py_environment_adapter import PyEnvironmentAdapter, is_py_environment
from actorlearner.environments.specs import EnvironmentSpecs, load_specs
from actorlearner.errors import ConfigurationError, one_line
from actorlearner.process.stop import Stop
from actorlearner.records.plain_path import plain_path
from actorlearner.records.seal import BrokenError

_NEVER = Stop()  # Nothing requests it.


class Policy:
    """A saved policy: call it with one observation, or a batch, to get the action or actions.

    Attributes:
      function: the policy for batches of one.
      train_step: the learner's train step at which it was saved.
      config: the configuration of its run.
    """

    def __init__(self, policy: Any, specs: EnvironmentSpecs, train_step: int, config: Config) -> None:
        """Traces a TFPolicy or a loaded SavedModel for batches of one."""
        self._policy = policy
        self._specs = specs
        self.train_step = train_step
        self.config = config
        self.function = PolicyFunction(policy, specs, batch_size=1)
        self._functions = {1: self.function}

    def __call__(self, observation: Nest, *, first: bool = False) -> Nest:
        """Chooses actions; the first call with a batch size traces the policy.

        Args:
          observation: nest of arrays with the shapes of the environment's observations, or [batch, ...].
          first: whether episodes begin here: the state of a policy with an LSTM is then zero.

        Returns:
          Nest of arrays with the shapes of the environment's actions, or [batch, ...].
        """
        spec = self._specs.observation
        leaves = [
            np.asarray(leaf, leaf_spec.dtype.as_numpy_dtype)
            for leaf, leaf_spec in zip(tree.flatten_up_to(spec, observation), tree.flatten(spec), strict=True)
        ]
        batched = leaves[0].ndim > len(tree.flatten(spec)[0].shape)
        batch = tree.unflatten_as(spec, leaves if batched else [leaf[None] for leaf in leaves])
        size = len(leaves[0]) if batched else 1
        actions = self.function_for(size)(batch, np.full(size, first))
        return actions if batched else tree.map_structure(lambda leaf: leaf[0], actions)

    def function_for(self, batch_size: int) -> PolicyFunction:
        """Returns the policy for batches of a size; traces it the first time."""
        if batch_size not in self._functions:
            self._functions[batch_size] = PolicyFunction(self._policy, self._specs, batch_size)
        return self._functions[batch_size]


def load_policy(path: str | Path) -> Policy:
    """Loads a policy by its path; takes seconds, because the environment is made once.

    Args:
      path: a run directory (its best policy, or else its greedy one), the directory of a SavedModel, or a
        learner's checkpoint (its greedy policy).

    Raises:
      ConfigurationError: no policy can be loaded from there, or its environment cannot be made.
    """
    source = find_policy(str(path))
    return load_source(source, load_specs(source.config.evaluated_environment))


def load_source(source: PolicySource, specs: EnvironmentSpecs) -> Policy:
    """Loads a policy, from a checkpoint the greedy one; takes seconds.

    Args:
      source: where it is saved.
      specs: the specs of the environment that it will act in.

    Raises:
      ConfigurationError: it cannot be read, or does not fit the specs.
    """
    try:
        if not source.is_checkpoint:
            saved = tf.saved_model.load(plain_path(source.path))
            return Policy(saved, specs, int(saved.get_train_step()), source.config)
        parts = make_agent(source.config, specs)
        restore_agent(source.path, parts)
        greedy = greedy_policy.GreedyPolicy(parts.agent.policy)
        return Policy(greedy, specs, int(parts.train_step.numpy()), source.config)
    except ConfigurationError:
        raise
    except Exception as error:  # TensorFlow raises many types for a damaged file or a misfit.
        why = str(error) if isinstance(error, BrokenError) else one_line(error)
        wrong = f"{POLICY_ARGUMENT}: {str(source.path)!r} cannot be loaded: {why}"
        raise ConfigurationError([wrong]) from error


def evaluate(
    policy: Policy, environment: Any = None, episodes: int = 20, seed: int = 0
) -> list[PlayedEpisode]:
    """Plays episodes and returns the return, the length and the info metrics of each.

    `evaluate.max_steps` of the policy's run cuts them off.

    Args:
      policy: from `load_policy`.
      environment: a gym environment, a TF-Agents PyEnvironment, or a callable that makes one. It gets no
        wrappers: neither the run's time limit nor its frame stack. None plays the same episodes as the
        command `rollout`, in the environment of the run's evaluations.
      episodes: the number of episodes.
      seed: seeds the environment, if it can be seeded.

    Raises:
      ConfigurationError: the environment of the policy's run cannot be made, or the given PyEnvironment is
        batched or has no scalar rewards.
      ValueError: a space of the given environment has no spec.
      RunError: the environment failed.
    """
    if environment is None:
        return [play_in_own_environment(policy, seed, number) for number in range(episodes)]
    given = hasattr(environment, "step") and not isinstance(environment, type)
    made = environment if given else environment()
    metrics = policy.config.environment.info_metrics
    adapter: Any = (PyEnvironmentAdapter if is_py_environment(made) else GymAdapter)(made, info_keys(metrics))
    adapter.seed(seed)
    try:
        guarded = GuardedEnvironment(lambda attempt: adapter, "the environment", max_faults=0)
        return _play(policy, guarded, episodes)
    finally:
        if not given:
            adapter.close()


def play_in_own_environment(policy: Policy, seed: int, number: int) -> PlayedEpisode:
    """Plays one whole episode in a new environment of the policy's run."""
    environment = episode_environment(policy.config, seed, number)
    try:
        (episode,) = _play(policy, environment, 1)
        return episode
    finally:
        environment.close()


def episode_environment(config: Config, seed: int, number: int) -> GuardedEnvironment:
    """Makes the environment of one episode; its random numbers depend on `seed` and `number` alone."""
    return load_guarded(config.evaluated_environment, seed, "rollout", number, 0)


def _play(policy: Policy, environment: GuardedEnvironment, episodes: int) -> list[PlayedEpisode]:
    """Plays episodes one after another, as evaluations of the policy's run do."""
    played = play_episodes(policy.config, [environment], policy.function, episodes, _NEVER)
    assert played is not None
    return played
