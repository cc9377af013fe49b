"""Stops a leak of TensorFlow 2.15 under Python 3.11: an eager tensor leaves 16 to 48 bytes behind.

Python 3.11 gives each new object of a class with a `__dict__` room for its first attributes, and
TensorFlow's own destructor does not know of it (https://github.com/tensorflow/tensorflow/issues/62551).
Each call of a policy makes some tensors: hundreds of MiB in a day of evaluations.
"""

import ctypes
import platform
import sys

_TP_NEW = 39
"""Which of the words of CPython 3.11's PyTypeObject says how an object of the type is made."""


def stop_tensor_leak() -> bool:
    """Has eager tensors made without that room; their attributes, which are rare, go to a dictionary.

    Imports TensorFlow. Does nothing under an interpreter that it does not know, or a second time.

    Returns:
      Whether tensors are made so now.
    """
    from tensorflow.python.framework import ops

    if platform.python_implementation() != "CPython" or sys.version_info[:2] != (3, 11):
        return False
    made_like_objects = _words(object)[_TP_NEW]
    without_room = ctypes.cast(ctypes.pythonapi.PyType_GenericNew, ctypes.c_void_p).value
    tensor = _words(ops.EagerTensor)
    if tensor[_TP_NEW] == made_like_objects:
        tensor[_TP_NEW] = without_room
    return bool(tensor[_TP_NEW] == without_room)


def _words(type_object: type) -> "ctypes.Array[ctypes.c_void_p]":
    """The beginning of a type as the interpreter has it in memory."""
    return (ctypes.c_void_p * (_TP_NEW + 1)).from_address(id(type_object))
