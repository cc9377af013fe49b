"""The group of learners that train as one, as the environment variable TF_CONFIG describes it."""

import dataclasses
import json
import os
from typing import Any, NoReturn

from actorlearner.config.addresses import read_address
from actorlearner.config.checks import MULTI_WORKER
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError

_TF_CONFIG = "TF_CONFIG"
_CHIEF, _WORKER = "chief", "worker"
_FORM = (
    f'{_TF_CONFIG}={{"cluster": {{"worker": ["HOST:PORT", ...]}}, "task": {{"type": "worker", "index": I}}}} '
    "in the environment of each learner, with I from 0"
)


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The learners of a group, and the index of this process.

    Attributes:
      addresses: HOST:PORT of each learner; the first is the chief.
      index: the index of this learner.
    """

    addresses: tuple[str, ...]
    index: int

    @property
    def is_chief(self) -> bool:
        """Whether this is the learner that publishes and saves."""
        return self.index == 0

    @property
    def name(self) -> str:
        """The name of this learner, see `learner_name`."""
        return learner_name(self.index)

    def describe(self, index: int) -> str:
        """Returns a learner's name and address, for messages."""
        return f"{learner_name(index)} at {self.addresses[index]}"


def learner_name(index: int) -> str:
    """Returns a learner's name, for its log and heartbeat; the chief is named like a single learner."""
    return f"learner-{index}" if index else "learner"


def learner_cluster(config: Config) -> Cluster | None:
    """Returns the group of this learner; None for a learner that trains by itself.

    Raises:
      ConfigurationError: TF_CONFIG does not describe a group with this learner.
    """
    return read_cluster(os.environ.get(_TF_CONFIG)) if config.learn.strategy == MULTI_WORKER else None


def read_cluster(text: str | None) -> Cluster:
    """Parses TF_CONFIG.

    A `chief` job with one task comes before the `worker` job, as in TensorFlow.

    Raises:
      ConfigurationError: it is not set, it is malformed, or its task is no learner of its cluster.
    """
    if not text:
        _refuse("is not set")
    try:
        value = json.loads(text)
    except ValueError as error:
        _refuse(f"is no JSON ({error})")
    cluster, task = _mapping(value, "cluster"), _mapping(value, "task")
    chiefs, workers = _addresses(cluster, _CHIEF), _addresses(cluster, _WORKER)
    addresses = chiefs + workers
    if others := sorted(set(cluster) - {_CHIEF, _WORKER}):
        _refuse(f"has a cluster with the job {others[0]!r}, and a group has learners only")
    if not addresses or len(chiefs) > 1:
        _refuse(f"has a cluster of {len(chiefs)} chiefs and {len(workers)} workers")
    if len(set(addresses)) < len(addresses):
        _refuse("has an address twice in its cluster")
    job, index = task.get("type"), task.get("index")
    if job not in (_CHIEF, _WORKER):
        _refuse(f"has a task of type {job!r}, which is no learner")
    tasks = chiefs if job == _CHIEF else workers
    if type(index) is not int or not 0 <= index < len(tasks):
        _refuse(f"has the task index {index!r} in a cluster with {len(tasks)} of the job {job!r}")
    return Cluster(tuple(addresses), index if job == _CHIEF else len(chiefs) + index)


def _mapping(value: Any, key: str) -> dict[str, Any]:
    found = value.get(key) if isinstance(value, dict) else None
    if not isinstance(found, dict):
        _refuse(f"has no mapping {key!r}")
    return found


def _addresses(cluster: dict[str, Any], job: str) -> list[str]:
    addresses = cluster.get(job, [])
    if not isinstance(addresses, list):
        _refuse(f"has no list of addresses for the job {job!r}")
    for address in addresses:
        try:
            read_address(address if isinstance(address, str) else "")
        except ValueError as error:
            _refuse(f"has the address {address!r}, which is not {error}")
    return addresses


def _refuse(wrong: str) -> NoReturn:
    raise ConfigurationError(
        [f"learn.strategy: {MULTI_WORKER} cannot work: {_TF_CONFIG} {wrong}; allowed: {_FORM}"]
    )
