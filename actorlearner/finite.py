"""Whether numbers can be used: no NaN and no infinity among them."""

import numpy as np
import tree

from actorlearner.environments.environment import Nest


def all_finite(nest: Nest) -> bool:
    """Whether no array or number of the nest has a NaN or an infinity."""
    return all(_finite(leaf) for leaf in tree.flatten(nest))


def _finite(leaf: Nest) -> bool:
    array = np.asarray(leaf)
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())
