"""The memory allocated by the C library: it shows leaks of TensorFlow or Reverb exactly."""

import ctypes
import gc


class _Statistics(ctypes.Structure):
    """glibc's `struct mallinfo2`."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def bytes_in_use() -> int:
    """The bytes in use on this process's heap: all arenas and all separately mapped allocations."""
    gc.collect()
    statistics = ctypes.CDLL(None).mallinfo2
    statistics.restype = _Statistics
    now = statistics()
    return int(now.uordblks + now.hblkhd)
