"""Threads, devices and strategies. What must come before TensorFlow is used runs in other processes."""

import json
import socket
from typing import Any

import pytest
import tensorflow as tf

from actorlearner.errors import ConfigurationError
from actorlearner.learning.cluster import Cluster
from actorlearner.learning.strategy import check_group_batch, make_strategy
from tests.support.processes import run_script

SCRIPT = """
import json

import tensorflow as tf

from actorlearner.learning import strategy as strategies
from actorlearner.process import tensorflow_setup
from actorlearner.errors import ConfigurationError

result = {"hidden": []}
tf.config.set_visible_devices = lambda visible, kind: result["hidden"].append([visible, kind])
tensorflow_setup.limit_tensorflow(threads=3)
try:
    strategies.make_strategy("mirrored:3", 256)
except ConfigurationError as error:
    result["problems"] = error.problems
strategy = strategies.make_strategy("mirrored:3", 255)
with strategy.scope():
    variable = tf.Variable(1.0)
copies = strategy.experimental_local_results(variable)
result["type"] = type(strategy).__name__
result["replicas"] = strategy.num_replicas_in_sync
result["devices"] = [device.name for device in tf.config.list_logical_devices("CPU")]
result["placed"] = sorted(copy.device.rpartition("/device:")[2] for copy in copies)
threading = tf.config.threading
result["threads"] = [
    threading.get_intra_op_parallelism_threads(), threading.get_inter_op_parallelism_threads()
]
print(json.dumps(result))
"""


@pytest.fixture(scope="module")
def fresh_process() -> dict[str, Any]:
    """What the script finds in a process where TensorFlow was not used before."""
    done = run_script(SCRIPT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_default_is_one_replica() -> None:
    strategy = make_strategy("default", batch_size=255)
    assert strategy is tf.distribute.get_strategy()
    assert strategy.num_replicas_in_sync == 1


def test_mirrored_n_makes_n_logical_devices(fresh_process: dict[str, Any]) -> None:
    assert fresh_process["type"] == "MirroredStrategy"
    assert fresh_process["replicas"] == 3
    assert fresh_process["devices"] == [f"/device:CPU:{i}" for i in range(3)]
    assert fresh_process["placed"] == [f"CPU:{i}" for i in range(3)]


def test_a_batch_that_the_replicas_do_not_divide_is_refused(fresh_process: dict[str, Any]) -> None:
    assert fresh_process["problems"] == [
        "learn.batch_size: 256 cannot work; allowed: a multiple of the 3 replicas of learn.strategy "
        "mirrored:3"
    ]


def test_a_batch_that_the_learners_of_a_group_do_not_divide_is_refused() -> None:
    """Before they look for each other."""
    check_group_batch(Cluster(("a:1", "b:1", "c:1"), 0), 255)
    with pytest.raises(ConfigurationError) as refusal:
        check_group_batch(Cluster(("a:1", "b:1", "c:1"), 2), 256)
    assert refusal.value.problems == (
        "learn.batch_size: 256 cannot work; allowed: a multiple of the 3 replicas of learn.strategy "
        "multi_worker_mirrored (3 learners)",
    )


def test_a_learner_whose_port_is_taken_raises_a_run_error() -> None:
    with socket.create_server(("", 0)) as taken:
        address = f"localhost:{taken.getsockname()[1]}"
        script = (
            "from actorlearner.learning.cluster import Cluster\n"
            "from actorlearner.learning.strategy import make_group_strategy\n"
            f"make_group_strategy(Cluster(('localhost:1', '{address}'), 1))"
        )
        done = run_script(script)
    assert f"RunError: TensorFlow cannot listen on {address}, of TF_CONFIG: UnknownError" in done.stderr


def test_limit_tensorflow_limits_threads_and_hides_gpus(fresh_process: dict[str, Any]) -> None:
    assert fresh_process["threads"] == [3, 3]
    assert fresh_process["hidden"] == [[[], "GPU"]]


@pytest.mark.skipif(bool(tf.config.list_physical_devices("GPU")), reason="there is a GPU to mirror on")
def test_mirrored_without_a_gpu_is_the_cpu() -> None:
    strategy = make_strategy("mirrored", batch_size=7)
    assert isinstance(strategy, tf.distribute.MirroredStrategy)
    assert strategy.num_replicas_in_sync == 1
    assert [device.rpartition("/")[2] for device in strategy.extended.worker_devices] == ["device:CPU:0"]


def test_mirrored_takes_every_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Strategy:
        num_replicas_in_sync = 2

        def __init__(self, devices: list[str]) -> None:
            made.append(devices)

    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind, kind])
    monkeypatch.setattr(tf.distribute, "MirroredStrategy", Strategy)
    make_strategy("mirrored", batch_size=8)
    assert made == [["GPU:0", "GPU:1"]]
    with pytest.raises(ConfigurationError, match=r"learn.batch_size: 7 .* a multiple of the 2 replicas"):
        make_strategy("mirrored", batch_size=7)


def test_tpu_without_a_tpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(tpu: str) -> None:
        raise ValueError("Please provide a TPU Name to connect to.")

    monkeypatch.setattr(tf.distribute.cluster_resolver.TPUClusterResolver, "connect", connect)
    with pytest.raises(ConfigurationError) as refusal:
        make_strategy("tpu", batch_size=8)
    (line,) = refusal.value.problems
    assert line.startswith("learn.strategy: tpu, but no TPU was found: ")
    assert line.endswith("; allowed: default or mirrored without one")
