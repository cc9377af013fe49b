"""The learner's distribution strategy, and the threads and devices it trains on."""

import logging

import tensorflow as tf
from tensorflow.python.distribute import collective_all_reduce_strategy
from tensorflow.python.eager import context

from actorlearner.config.checks import MULTI_WORKER, mirrored_replicas
from actorlearner.config.problems import problem
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError, RunError, one_line
from actorlearner.learning.cluster import Cluster
from actorlearner.process.tensorflow_setup import use_all_cores

_log = logging.getLogger(__name__)


def configure_learner(config: Config) -> None:
    """Sets the threads of training, and the devices of `mirrored:N`.

    It may be called again with the same configuration, even after TensorFlow was used.
    """
    use_all_cores(config.learn.intra_op_threads)
    if count := mirrored_replicas(config.learn.strategy):
        _logical_cpus(count)


def make_strategy(name: str, batch_size: int) -> tf.distribute.Strategy:
    """Makes the learner's strategy; call before any other TensorFlow call.

    Args:
      name: `learn.strategy`.
      batch_size: the global batch size; the replicas divide it among themselves.

    Raises:
      ConfigurationError: the replicas do not divide the batch, or there is no such device.
    """
    strategy = _strategy(name)
    _check_batch(batch_size, strategy.num_replicas_in_sync, name)
    return strategy


def check_group_batch(cluster: Cluster, batch_size: int) -> None:
    """Checks that the replicas of all learners divide the batch.

    Assumes that each learner has as many GPUs as this one.

    Raises:
      ConfigurationError: they do not divide it.
    """
    replicas = len(cluster.addresses) * max(1, len(tf.config.list_physical_devices("GPU")))
    _check_batch(batch_size, replicas, f"{MULTI_WORKER} ({len(cluster.addresses)} learners)")


def make_group_strategy(cluster: Cluster) -> tf.distribute.Strategy:
    """Makes the strategy of a group of learners; call before any other TensorFlow call. Does not block.

    On return, TensorFlow's server listens on this learner's address. Making the first variable under the
    strategy blocks until all learners have joined, without a deadline: connect them with a GroupLink before.

    Args:
      cluster: the group, and the index of this process.

    Raises:
      RunError: the learner's port is taken.
    """
    # The GroupLink replaces TensorFlow's coordination service, whose start blocks and cannot be interrupted,
    # and its health check of the other tasks, which takes a minute.
    context.context().configure_coordination_service(service_type="")
    collective_all_reduce_strategy.CollectiveAllReduceExtended._enable_check_health = False
    gpus = len(tf.config.list_physical_devices("GPU"))
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({"worker": list(cluster.addresses)}),
        task_type="worker",
        task_id=cluster.index,
        num_accelerators={"GPU": gpus},
        rpc_layer="grpc",
    )
    implementation = tf.distribute.experimental.CommunicationImplementation
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=implementation.NCCL if gpus else implementation.RING
    )
    try:
        return tf.distribute.MultiWorkerMirroredStrategy(resolver, options)
    except tf.errors.OpError as error:
        address = cluster.addresses[cluster.index]
        raise RunError(f"TensorFlow cannot listen on {address}, of TF_CONFIG: {one_line(error)}") from error


def _check_batch(batch_size: int, replicas: int, name: str) -> None:
    if batch_size % replicas:
        allowed = f"a multiple of the {replicas} replicas of learn.strategy {name}"
        raise ConfigurationError([problem("learn.batch_size", f"{batch_size} cannot work", allowed)])
    _log.info("strategy %s: %d replica(s)", name, replicas)


def _strategy(name: str) -> tf.distribute.Strategy:
    if name == "default":
        return tf.distribute.get_strategy()
    if name == "tpu":
        return _tpu_strategy()
    if count := mirrored_replicas(name):
        devices = _logical_cpus(count)
    else:
        devices = [f"GPU:{i}" for i in range(len(tf.config.list_physical_devices("GPU")))]
        if not devices:
            _log.warning("learn.strategy mirrored: no GPU here, the CPU is the only replica")
            devices = ["CPU:0"]
    return tf.distribute.MirroredStrategy(devices)


def _logical_cpus(count: int) -> list[str]:
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration() for _ in range(count)]
    )
    return [f"CPU:{i}" for i in range(count)]


def _tpu_strategy() -> tf.distribute.Strategy:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect("")
    except (ValueError, tf.errors.NotFoundError) as error:
        line = problem(
            "learn.strategy", f"tpu, but no TPU was found: {error}", "default or mirrored without one"
        )
        raise ConfigurationError([line]) from error
    return tf.distribute.TPUStrategy(resolver)
