"""How much memory the C library has given out: a leak of TensorFlow or Reverb shows in it exactly."""

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
    """Of the heap of this process, with all its arenas and what was mapped for single allocations."""
    gc.collect()
    statistics = ctypes.CDLL(None).mallinfo2
    statistics.restype = _Statistics
    now = statistics()
    return int(now.uordblks + now.hblkhd)
