"""TensorFlow's set-up before, during and after its import; importing this module imports no TensorFlow."""

import contextlib
import ctypes
import gc
import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterator

from actorlearner.errors import RunError
from actorlearner.process.cores import cores

_PIN = "1.26.4"  # As in pyproject.toml; a test compares them.


def check_numpy() -> None:
    """Checks the installed NumPy without importing it; TensorFlow's own error does not name the cause.

    Raises:
      RunError: it is NumPy 2, and TensorFlow 2.15 and Reverb are compiled against NumPy 1.
    """
    installed = importlib.metadata.version("numpy")
    if int(installed.partition(".")[0]) >= 2:
        raise RunError(
            f"numpy {installed} is installed, but TensorFlow and Reverb need numpy=={_PIN}: pip install "
            f"numpy=={_PIN}; add other packages with pip freeze --exclude-editable > installed.txt, then "
            "pip install -c installed.txt NAME"
        )


@contextlib.contextmanager
def without_gc() -> Iterator[None]:
    """Context manager that exempts all objects made in it from garbage collection, for good.

    For imports: TensorFlow's makes half a million objects and almost no garbage. Scanning them repeatedly
    takes a quarter of the import's time, and half a second of every full collection afterwards.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def limit_tensorflow(threads: int, gpus: bool = False) -> None:
    """Limits TensorFlow's threads, and hides the GPUs unless `gpus`; call before any other TensorFlow call.

    Actors call small networks: more threads gain little, and take cores from simulators and the learner. On
    GPUs, memory grows with use: by default, TensorFlow would take all of it from the learner and simulators.
    """
    import tensorflow as tf

    if not gpus:
        tf.config.set_visible_devices([], "GPU")
    for gpu in tf.config.get_visible_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)


def limit_children(threads: int, gpus: bool) -> None:
    """Limits TensorFlow as `limit_tensorflow` does, in the processes that this one starts from now on."""
    if not gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    os.environ |= dict.fromkeys(("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"), str(threads))


def use_all_cores(intra_op_threads: int) -> None:
    """Lets operations run in parallel on all cores; call before any other TensorFlow call.

    Args:
      intra_op_threads: threads that share one operation.
    """
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(intra_op_threads)
    tf.config.threading.set_inter_op_parallelism_threads(cores())


_TP_NEW = 39
"""The index of the slot `tp_new`, which makes objects, among the words of CPython 3.11's PyTypeObject."""


def stop_tensor_leak() -> bool:
    """Stops each eager tensor from leaking its preallocated attributes, 48 bytes, under CPython 3.11.

    Afterwards, eager tensors keep their few attributes in a dictionary. Imports TensorFlow. A no-op under
    other interpreters, and the second time.

    Returns:
      Whether the leak is fixed.
    """
    from tensorflow.python.framework import ops

    if platform.python_implementation() != "CPython" or sys.version_info[:2] != (3, 11):
        return False
    default_new = _words(object)[_TP_NEW]
    plain_new = ctypes.cast(ctypes.pythonapi.PyType_GenericNew, ctypes.c_void_p).value
    tensor = _words(ops.EagerTensor)
    if tensor[_TP_NEW] == default_new:
        tensor[_TP_NEW] = plain_new
    return bool(tensor[_TP_NEW] == plain_new)


def _words(type_object: type) -> "ctypes.Array[ctypes.c_void_p]":
    """Returns the first words of a type object in memory."""
    return (ctypes.c_void_p * (_TP_NEW + 1)).from_address(id(type_object))
