"""bfloat16 matrix products: close to float32, float32 variables, and saved policies in float32."""

import numpy as np
import pytest
import tensorflow as tf

from actorlearner.agents.precision import float32_products, use_bfloat16

DISCOUNT = [1.0, 0.0, 1.0, 1.0, 0.0]


def operations(function: tf.types.experimental.ConcreteFunction) -> set[str]:
    """The dtypes of the matrix products in a graph."""
    return {node.attr["T"].type for node in function.graph.as_graph_def().node if node.op == "MatMul"}


def traced(layer: tf.keras.layers.Layer) -> set[str]:
    return operations(tf.function(layer).get_concrete_function(tf.TensorSpec([5, 3], tf.float32)))


FLOAT32, BFLOAT16 = tf.float32.as_datatype_enum, tf.bfloat16.as_datatype_enum


@pytest.mark.parametrize("name", ["sac", "td3", "dqn", "tqc"])
def test_an_agent_trains_nearly_as_in_float32(name, continuous, discrete, agents, batches):
    specs = discrete if name == "dqn" else continuous
    keys = {"layers": [64, 64]} if name == "dqn" else {"actor_layers": [64, 64]}
    losses = []
    for bfloat16 in (False, True):
        agent = agents(name, specs, **keys)
        if bfloat16:
            use_bfloat16(agent)
        tf.random.set_seed(9)
        losses.append([agent.train(batches(specs, DISCOUNT).transition()).loss.numpy() for _ in range(2)])
        assert {variable.dtype for variable in agent.variables} <= {tf.float32, tf.int64, tf.int32}
    exact, reduced = losses
    assert exact != reduced
    np.testing.assert_allclose(reduced, exact, rtol=0.1, atol=0.1)


def test_layers_multiply_in_bfloat16_except_inside_float32_products():
    model = tf.Module()
    model.dense = tf.keras.layers.Dense(4, activation="tanh")
    model.dense.build([None, 3])
    inputs = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    exact = model.dense(inputs).numpy()
    assert traced(model.dense) == {FLOAT32}

    use_bfloat16(model)
    assert traced(model.dense) == {BFLOAT16}
    np.testing.assert_allclose(model.dense(inputs), exact, atol=0.02)
    assert model.dense(inputs).dtype == tf.float32
    with float32_products():
        assert traced(model.dense) == {FLOAT32}
        np.testing.assert_array_equal(model.dense(inputs), exact)


def test_outputs_are_exact():
    model = tf.Module()
    model.head = tf.keras.layers.Dense(4)
    model.head.build([None, 3])
    use_bfloat16(model)
    assert traced(model.head) == {FLOAT32}


def test_convolutions_are_reduced_as_well():
    model = tf.Module()
    model.layer = tf.keras.layers.Conv2D(4, 3)
    model.layer.build([None, 8, 8, 2])
    images = np.random.default_rng(0).normal(size=(5, 8, 8, 2)).astype(np.float32)
    exact = model.layer(images).numpy()
    use_bfloat16(model)
    reduced = model.layer(images)
    assert reduced.dtype == tf.float32
    assert not np.array_equal(reduced, exact)
    np.testing.assert_allclose(reduced, exact, atol=0.05)
