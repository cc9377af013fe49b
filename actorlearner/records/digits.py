"""How many digits a figure is shown with."""

import math

_SIGNIFICANT = 3
_MOST = 12


def decimals(*values: float, least: int = 2) -> int:
    """Digits after the point that show three significant ones of the largest value.

    Args:
      *values: figures that are shown beside each other, such as a mean and its deviation.
      least: digits after the point of large values.
    """
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if largest == 0.0:
        return least
    return min(_MOST, max(least, _SIGNIFICANT - 1 - math.floor(math.log10(largest))))
