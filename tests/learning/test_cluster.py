"""How a TF_CONFIG describes a group of learners, and what is refused."""

import json
from typing import Any

import pytest

from actorlearner.config.schema import Config, LearnConfig
from actorlearner.errors import ConfigurationError
from actorlearner.learning.cluster import Cluster, learner_cluster, learner_name, read_cluster

TWO = ["a.host:2222", "b.host:2222"]


def tf_config(cluster: Any, task: Any) -> str:
    return json.dumps({"cluster": cluster, "task": task})


def test_the_first_worker_is_the_chief() -> None:
    chief = read_cluster(tf_config({"worker": TWO}, {"type": "worker", "index": 0}))
    other = read_cluster(tf_config({"worker": TWO}, {"type": "worker", "index": 1}))
    assert chief == Cluster(tuple(TWO), 0)
    assert (chief.is_chief, chief.name) == (True, "learner")
    assert (other.is_chief, other.name) == (False, "learner-1")
    assert other.describe(0) == "learner at a.host:2222"


def test_a_chief_comes_before_the_workers() -> None:
    cluster = {"worker": ["b:1", "[::1]:2"], "chief": ["a:1"]}
    assert read_cluster(tf_config(cluster, {"type": "chief", "index": 0})) == Cluster(
        ("a:1", "b:1", "[::1]:2"), 0
    )
    assert read_cluster(tf_config(cluster, {"type": "worker", "index": 0})).index == 1
    assert read_cluster(tf_config(cluster, {"type": "worker", "index": 1})).name == learner_name(2)


TASK = {"type": "worker", "index": 0}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (None, "is not set"),
        ("", "is not set"),
        ("{", "is no JSON ("),
        ("[]", "has no mapping 'cluster'"),
        ("{}", "has no mapping 'cluster'"),
        (json.dumps({"cluster": {"worker": TWO}}), "has no mapping 'task'"),
        (tf_config({"worker": TWO}, 3), "has no mapping 'task'"),
        (tf_config({}, TASK), "has a cluster of 0 chiefs and 0 workers"),
        (tf_config({"chief": ["a:1", "b:1"]}, TASK), "has a cluster of 2 chiefs and 0 workers"),
        (tf_config({"worker": "a:1"}, TASK), "has no list of addresses for the job 'worker'"),
        (tf_config({"worker": ["a"]}, TASK), "has the address 'a', which is not HOST:PORT"),
        (tf_config({"worker": ["a:99999"]}, TASK), "has the address 'a:99999', which is not HOST:PORT"),
        (tf_config({"worker": [7]}, TASK), "has the address 7, which is not HOST:PORT"),
        (tf_config({"worker": ["a:1", "a:1"]}, TASK), "has an address twice in its cluster"),
        (tf_config({"worker": TWO, "ps": ["c:1"]}, TASK), "has a cluster with the job 'ps'"),
        (tf_config({"worker": TWO}, {"type": "evaluator", "index": 0}), "has a task of type 'evaluator'"),
        (tf_config({"worker": TWO}, {"index": 0}), "has a task of type None"),
        (tf_config({"worker": TWO}, {"type": "chief", "index": 0}), "has the task index 0 in a cluster"),
        (tf_config({"worker": TWO}, {"type": "worker"}), "has the task index None in a cluster with 2"),
        (tf_config({"worker": TWO}, {"type": "worker", "index": 2}), "has the task index 2 in a cluster"),
        (tf_config({"worker": TWO}, {"type": "worker", "index": -1}), "has the task index -1"),
        (tf_config({"worker": TWO}, {"type": "worker", "index": "0"}), "has the task index '0'"),
        (tf_config({"worker": TWO}, {"type": "worker", "index": True}), "has the task index True"),
    ],
)  # fmt: skip
def test_an_unusable_tf_config_is_refused(text: str | None, wrong: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        read_cluster(text)
    (line,) = refusal.value.problems
    assert line.startswith(f"learn.strategy: multi_worker_mirrored cannot work: TF_CONFIG {wrong}")
    assert '; allowed: TF_CONFIG={"cluster": {"worker": ["HOST:PORT", ...]}' in line
    assert "\n" not in line


def test_other_strategies_ignore_tf_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", "{")
    assert learner_cluster(Config()) is None
    with pytest.raises(ConfigurationError):
        learner_cluster(Config(learn=LearnConfig(strategy="multi_worker_mirrored")))
