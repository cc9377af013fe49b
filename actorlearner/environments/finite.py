"""Whether numbers can be used: no NaN and no infinity among them."""

import math
from typing import Any

import numpy as np
import tree


def all_finite(nest: Any) -> bool:
    """Whether no array or number of the nest has a NaN or an infinity."""
    if _is_vector(nest) and math.isfinite(nest.dot(nest)):  # Four times as fast; overflows decide nothing.
        return True
    return all(_finite(leaf) for leaf in tree.flatten(nest))


def _is_vector(nest: Any) -> bool:
    return type(nest) is np.ndarray and nest.ndim == 1 and nest.dtype.kind == "f"


def _finite(leaf: Any) -> bool:
    array = np.asarray(leaf)
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())
