"""Threads, GPUs and distribution strategies: what of the machine a role uses."""

import logging

import tensorflow as tf

from actorlearner.errors import ConfigurationError
from actorlearner.machine import cores

_log = logging.getLogger(__name__)


def use_cpu(threads: int) -> None:
    """Keeps this process off the GPUs and to so many threads; call before any other TensorFlow call.

    Actors call small networks: more threads cost more than they bring, and the cores belong to the
    simulators and the learner.
    """
    tf.config.set_visible_devices([], "GPU")
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)


def share_cpus(intra_op_threads: int) -> None:
    """Lets operations run side by side on all cores; call before any other TensorFlow call.

    Args:
      intra_op_threads: threads that share one operation.
    """
    tf.config.threading.set_intra_op_parallelism_threads(intra_op_threads)
    tf.config.threading.set_inter_op_parallelism_threads(cores())


def make_strategy(name: str, batch_size: int) -> tf.distribute.Strategy:
    """Makes the learner's strategy; call before any other TensorFlow call.

    Args:
      name: `learn.strategy`.
      batch_size: the global batch, which the replicas divide among them.

    Raises:
      ConfigurationError: the replicas do not divide the batch, or there is no such device.
    """
    strategy = _strategy(name)
    replicas = strategy.num_replicas_in_sync
    if batch_size % replicas:
        raise ConfigurationError(
            [
                f"learn.batch_size: {batch_size} is not divisible by the {replicas} replicas of "
                f"learn.strategy {name}"
            ]
        )
    _log.info("strategy %s: %d replica(s)", name, replicas)
    return strategy


def _strategy(name: str) -> tf.distribute.Strategy:
    if name == "default":
        return tf.distribute.get_strategy()
    if name == "tpu":
        return _tpu_strategy()
    _, _, count = name.partition(":")
    if count:
        devices = _logical_cpus(int(count))
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
        raise ConfigurationError([f"learn.strategy: tpu, but no TPU was found: {error}"]) from error
    return tf.distribute.TPUStrategy(resolver)
