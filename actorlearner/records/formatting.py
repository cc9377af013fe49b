"""Formats figures and durations for display."""

import math

_SIGNIFICANT = 3
_MOST = 12

_MIB = 2**20
_GIB = 2**30


def decimals(*values: float, least: int = 2) -> int:
    """Returns the number of decimals that shows three significant digits of the largest value.

    Args:
      *values: figures shown together, such as a mean and its deviation.
      least: minimum number of decimals.
    """
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if largest == 0.0:
        return least
    return min(_MOST, max(least, _SIGNIFICANT - 1 - math.floor(math.log10(largest))))


def return_text(value: float) -> str:
    """Formats a return with as many decimals as it needs."""
    return f"{value:.{decimals(value)}f}"


def rate_text(per_s: float | None) -> str:
    """Formats a rate, below 10 with decimals; `-` for None."""
    if per_s is None:
        return "-"
    return f"{per_s:,.{decimals(per_s) if 0 < per_s < 10 else 0}f}"


def plural(count: int, noun: str) -> str:
    """Formats `1 environment`, `8 environments`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def bytes_text(count: float) -> str:
    """Formats a number of bytes in GiB or MiB."""
    return f"{count / _GIB:,.1f} GiB" if count >= 0.1 * _GIB else f"{count / _MIB:.1f} MiB"


def duration(seconds: float | None) -> str:
    """Returns hours, minutes and seconds, such as 1:02:03; `-` for None."""
    if seconds is None:
        return "-"
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}"
