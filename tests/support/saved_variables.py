"""Reads saved policies without loading them, which would take a second each."""

from pathlib import Path

import numpy as np
import tensorflow as tf

_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"


def saved_variables(policy: Path) -> dict[str, np.ndarray]:
    """Reads all variables of a SavedModel, by name; TensorFlow compares their checksums."""
    reader = tf.train.load_checkpoint(str(policy / "variables" / "variables"))
    names = [name for name in reader.get_variable_to_shape_map() if name.endswith(_SUFFIX)]
    return {name.removesuffix(_SUFFIX): reader.get_tensor(name) for name in names}
