"""Eager tensors do not leak."""

import sys
import weakref

import tensorflow as tf

from actorlearner.process.tensorflow_setup import stop_tensor_leak

_TENSORS = 5_000


def blocks_left(tensors: int) -> int:
    """Returns the memory blocks that so many tensors leak."""
    before = sys.getallocatedblocks()
    for _ in range(tensors):
        tf.constant([1.0])
    return sys.getallocatedblocks() - before


def test_tensors_do_not_leak() -> None:
    assert stop_tensor_leak()
    blocks_left(_TENSORS)  # Warm-up: allocations that are made only once.
    # A leak is a block a tensor or more. Threads that earlier tests left may allocate some meanwhile.
    assert blocks_left(_TENSORS) < _TENSORS / 2


def test_the_second_call_is_a_no_op() -> None:
    assert stop_tensor_leak()
    assert stop_tensor_leak()


def test_tensors_still_work() -> None:
    stop_tensor_leak()
    tensor = tf.constant([1.0, 2.0])
    tensor.mark = "an attribute"
    assert tensor.mark == "an attribute"
    assert vars(tensor) == {"mark": "an attribute"}
    gone = weakref.ref(tensor)
    assert (tensor * 2).numpy().tolist() == [2.0, 4.0]
    del tensor
    assert gone() is None
    variable = tf.Variable([3.0])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(variable**2)
    assert tape.gradient(loss, variable).numpy().tolist() == [6.0]
