"""What counts as finite."""

import numpy as np

from actorlearner.environments.finite import all_finite


def test_huge_numbers_are_finite() -> None:
    assert all_finite(np.full(8, 3e38, np.float32))
    assert not all_finite(np.array([3e38, 3e38, np.inf], np.float32))
    assert not all_finite({"a": np.array([np.inf, -np.inf]), "b": np.array([1])})
    assert all_finite({"a": np.array([1, 2]), "b": np.array([True])})
