"""Fixes a leak of TensorFlow 2.15 under Python 3.11: each eager tensor leaks 16 to 48 bytes.

Python 3.11 preallocates memory for the first attributes of each object with a `__dict__`, and TensorFlow's
destructor does not free it (https://github.com/tensorflow/tensorflow/issues/62551). Each call of a policy
makes some tensors: hundreds of MiB in a day of evaluations.
"""

import ctypes
import platform
import sys

_TP_NEW = 39
"""The index of the slot `tp_new`, which makes objects, among the words of CPython 3.11's PyTypeObject."""


def stop_tensor_leak() -> bool:
    """Makes eager tensors without preallocated attributes; their few attributes go to a dictionary.

    Imports TensorFlow. A no-op under other interpreters, and the second time.

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
