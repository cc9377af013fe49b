"""The policies as SavedModels, which run without this package."""

import logging
import threading
import time
from pathlib import Path

import tensorflow as tf
from tf_agents.policies import greedy_policy

from actorlearner.agents.make import AgentParts
from actorlearner.agents.precision import float32_products
from actorlearner.config.schema import Config
from actorlearner.learning.settled import is_settled, settled_step
from actorlearner.learning.training_graph import TrainingGraph
from actorlearner.records.disk import Outage
from actorlearner.records.policy_directory import PolicyDirectory

_log = logging.getLogger(__name__)


class PolicyExport:
    """Saves `policy`, `collect_policy` and `greedy_policy`; each replaces its predecessor atomically."""

    def __init__(self, directory: Path, parts: AgentParts, config: Config) -> None:
        """Nothing is traced or written yet.

        Args:
          directory: the directory of all policies.
          parts: the agent.
          config: the run's configuration, which is saved with each policy.
        """
        self._directory = directory
        self._parts = parts
        self._config = config
        self._policies: list[PolicyDirectory] = []
        self._saved = -1
        # At a stop the main thread saves, while the training thread may be saving as well.
        self._lock = threading.Lock()
        self._outage = Outage("policies", directory)

    @property
    def begun(self) -> bool:
        """True once this learner has traced the policies; the first `save` does that."""
        return bool(self._policies)

    def save(self, graph: TrainingGraph | None = None) -> bool:
        """Writes the three SavedModels, unless this object has written those of this train step already.

        The first call traces them and takes seconds; later calls write only the variables. Blocks while
        `graph` takes a train step, see `settled_step`.

        Args:
          graph: may take train steps on another thread meanwhile; None: no train step can be in progress.

        Returns:
          Whether they exist. A disk that is full or fails is logged, and the earlier policies stay.

        Raises:
          RunError: a train step failed, or did not end in time; the earlier policies stay.
        """
        with self._lock:
            started = time.monotonic()
            train_step = int(self._parts.train_step.numpy())
            if train_step == self._saved:
                return True
            try:
                with float32_products():  # Around all of it: the first `prepare` traces graphs, too.
                    self._policies = self._policies or self._trace()
                    train_step = self._prepare(graph)
                for policy in self._policies:
                    policy.replace()
            except (OSError, tf.errors.OpError) as error:
                self._outage.failed(error)
                for policy in self._policies:
                    policy.remove_leftovers()
                return False
            self._saved = train_step
            self._outage.recovered()
            _log.info("saved the policies in %.1f s", time.monotonic() - started)
            return True

    def _prepare(self, graph: TrainingGraph | None) -> int:
        """Prepares the policies of one train step; returns it."""
        while True:
            train_step = settled_step(self._parts.train_step, graph)
            for policy in self._policies:
                policy.prepare({})
            if is_settled(train_step, self._parts.train_step, graph):
                return train_step

    def _trace(self) -> list[PolicyDirectory]:
        agent = self._parts.agent
        policies = {
            "policy": agent.policy,
            "collect_policy": agent.collect_policy,
            "greedy_policy": greedy_policy.GreedyPolicy(agent.policy),
        }
        return [
            PolicyDirectory(self._directory / name, policy, self._parts.train_step, self._config)
            for name, policy in policies.items()
        ]
