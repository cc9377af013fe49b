"""Which threads and devices of the machine a role's TensorFlow uses."""

import tensorflow as tf

from actorlearner.process.choices import cores


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
