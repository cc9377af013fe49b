"""Matrix products in bfloat16, with weights, sums and everything else in float32.

Keras' mixed precision does not fit TF-Agents' networks, whose other parts refuse bfloat16. So dense layers
and convolutions cast their own inputs, weights and outputs. Import this only where TensorFlow may be
imported.
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import tensorflow as tf


class _Thread(threading.local):
    """State of one thread: while `exact` is set, layers in the graphs that the thread traces use float32."""

    exact = False


_thread = _Thread()


class _Bfloat16Dense(tf.keras.layers.Dense):
    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        if _thread.exact:
            return super().call(inputs)
        outputs = tf.cast(tf.matmul(_reduced(inputs), _reduced(self.kernel)), tf.float32)
        if self.use_bias:
            outputs = tf.nn.bias_add(outputs, self.bias)
        return self.activation(outputs)


class _Bfloat16Conv2D(tf.keras.layers.Conv2D):
    def convolution_op(self, inputs: tf.Tensor, kernel: Any) -> tf.Tensor:
        if _thread.exact:
            return super().convolution_op(inputs, kernel)
        return tf.cast(super().convolution_op(_reduced(inputs), _reduced(kernel)), tf.float32)


_REPLACED: dict[type, type] = {
    tf.keras.layers.Dense: _Bfloat16Dense,
    tf.keras.layers.Conv2D: _Bfloat16Conv2D,
}


def use_bfloat16(agent: tf.Module) -> None:
    """Makes all dense layers and convolutions of an agent multiply in bfloat16, in graphs traced from now on.

    Variables, and so checkpoints and published policies, stay float32. Layers of other kinds, such as LSTMs,
    keep float32. So do dense layers without an activation, because they are outputs: the three digits of
    bfloat16 are too few for values and for PPO's probability ratios.
    """
    for module in agent.submodules:
        if type(module) in _REPLACED and not _is_output(module):
            module.__class__ = _REPLACED[type(module)]


def _is_output(layer: Any) -> bool:
    return type(layer) is tf.keras.layers.Dense and layer.activation is tf.keras.activations.linear


@contextlib.contextmanager
def float32_products() -> Iterator[None]:
    """Context manager; graphs traced in it multiply in float32, as SavedModels have to on any processor."""
    _thread.exact = True
    try:
        yield
    finally:
        _thread.exact = False


def _reduced(tensor: Any) -> tf.Tensor:
    return tf.cast(tensor, tf.bfloat16)
