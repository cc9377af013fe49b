"""How errors of foreign code become one line."""

import pytest
import tensorflow as tf

from actorlearner.errors import first_line, one_line


class MuteError(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("first\n\n second"), "ValueError: first second"),
        (ValueError(), "ValueError"),
        (MuteError(), "MuteError"),
        (ValueError("Graph execution error:\n"), "ValueError: Graph execution error:"),
        (
            ValueError("Exception encountered when calling layer 'a' (type A).\n\nOOM when allocating"),
            "ValueError: OOM when allocating",
        ),
    ],
)
def test_a_message_of_several_lines_becomes_one(error: Exception, line: str) -> None:
    assert one_line(error) == line
    assert first_line(error) == line.removesuffix(" second")


def test_an_error_in_a_graph_of_tensorflow_has_its_reason() -> None:
    """TensorFlow puts some lines of headings and places before it."""

    @tf.function(autograph=False)
    def fail(number: tf.Tensor) -> tf.Tensor:
        with tf.control_dependencies([tf.debugging.Assert(number < 3, ["too large"])]):
            return number + 1

    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        fail(tf.constant(3))
    assert one_line(raised.value).startswith("InvalidArgumentError: assertion failed: [too large]")
    assert first_line(raised.value) == "InvalidArgumentError: assertion failed: [too large]"
