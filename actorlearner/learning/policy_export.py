"""The policies as SavedModels, which run without this package."""

import logging
import shutil
import time
from pathlib import Path

import tensorflow as tf
from tf_agents.policies import greedy_policy, policy_saver

from actorlearner.agents.make import AgentParts
from actorlearner.disk import Outage

_log = logging.getLogger(__name__)


class PolicyExport:
    """Saves `policy`, `collect_policy` and `greedy_policy`, each replacing the one before as a whole."""

    def __init__(self, directory: Path, parts: AgentParts) -> None:
        """Nothing is traced or written yet."""
        self._directory = directory
        self._parts = parts
        self._savers: dict[str, policy_saver.PolicySaver] = {}
        self._written: set[str] = set()
        self._outage = Outage("policies", directory)

    @property
    def begun(self) -> bool:
        """Whether `save` was called, by this learner."""
        return bool(self._savers)

    def save(self) -> bool:
        """Writes the three SavedModels.

        The first call traces them and takes seconds; later ones write only the variables anew.

        Returns:
          Whether that worked. A disk that is full or fails is logged, and what was saved before is kept.
        """
        started = time.monotonic()
        self._savers = self._savers or self._make_savers()
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            for name, saver in self._savers.items():
                self._replace(name, saver)
        except (OSError, tf.errors.OpError) as error:
            self._outage.failed(error)
            self._remove_rests()
            return False
        self._outage.worked()
        _log.info("saved the policies in %.1f s", time.monotonic() - started)
        return True

    def _make_savers(self) -> dict[str, policy_saver.PolicySaver]:
        agent = self._parts.agent
        policies = {
            "policy": agent.policy,
            "collect_policy": agent.collect_policy,
            "greedy_policy": greedy_policy.GreedyPolicy(agent.policy),
        }
        return {
            name: policy_saver.PolicySaver(policy, batch_size=None, train_step=self._parts.train_step)
            for name, policy in policies.items()
        }

    def _replace(self, name: str, saver: policy_saver.PolicySaver) -> None:
        target, fresh, stale = self._paths(name)
        self._remove_rests()  # Of a learner that was killed while it saved.
        if name in self._written:
            # The graph never changes, and a saver's checkpoint has the form of a SavedModel's variables.
            shutil.copytree(target, fresh)
            saver.save_checkpoint(str(fresh))
        else:
            saver.save(str(fresh))
        if target.exists():
            target.rename(stale)
        fresh.rename(target)
        shutil.rmtree(stale, ignore_errors=True)
        self._written.add(name)

    def _paths(self, name: str) -> tuple[Path, Path, Path]:
        """Where a SavedModel is, where a new one is written, and where the one before it goes."""
        return self._directory / name, self._directory / f".{name}.new", self._directory / f".{name}.old"

    def _remove_rests(self) -> None:
        """Removes what was not written whole, or was replaced; its room may be needed."""
        for name in self._savers:
            for left in self._paths(name)[1:]:
                shutil.rmtree(left, ignore_errors=True)
