"""The policies as SavedModels, which run without this package."""

import logging
import shutil
import time
from pathlib import Path

from tf_agents.policies import greedy_policy, policy_saver

from actorlearner.agents.make import AgentParts

_log = logging.getLogger(__name__)


class PolicyExport:
    """Saves `policy`, `collect_policy` and `greedy_policy`, each replacing the one before as a whole."""

    def __init__(self, directory: Path, parts: AgentParts) -> None:
        """Nothing is traced or written yet."""
        self._directory = directory
        self._parts = parts
        self._savers: dict[str, policy_saver.PolicySaver] = {}
        self._written: set[str] = set()

    @property
    def saved(self) -> bool:
        """Whether the SavedModels were written, by this learner."""
        return bool(self._written)

    def save(self) -> None:
        """Writes the three SavedModels.

        The first call traces them and takes seconds; later ones write only the variables anew.
        """
        started = time.monotonic()
        self._savers = self._savers or self._make_savers()
        self._directory.mkdir(parents=True, exist_ok=True)
        for name, saver in self._savers.items():
            self._replace(name, saver)
        _log.info("saved the policies in %.1f s", time.monotonic() - started)

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
        target = self._directory / name
        fresh = self._directory / f".{name}.new"
        stale = self._directory / f".{name}.old"
        for left in (fresh, stale):  # By a learner that was killed while it saved.
            shutil.rmtree(left, ignore_errors=True)
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
