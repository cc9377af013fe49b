"""Sets the threads and devices that a role's TensorFlow uses."""

import tensorflow as tf

from actorlearner.process.cores import cores


def use_cpu(threads: int) -> None:
    """Hides the GPUs and limits TensorFlow's threads; call before any other TensorFlow call.

    Actors call small networks: more threads gain little, and take cores from simulators and the learner.
    """
    tf.config.set_visible_devices([], "GPU")
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)


def share_cpus(intra_op_threads: int) -> None:
    """Lets operations run in parallel on all cores; call before any other TensorFlow call.

    Args:
      intra_op_threads: threads that share one operation.
    """
    tf.config.threading.set_intra_op_parallelism_threads(intra_op_threads)
    tf.config.threading.set_inter_op_parallelism_threads(cores())
