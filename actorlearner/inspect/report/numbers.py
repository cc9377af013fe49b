"""How a report writes numbers."""

from actorlearner.records.digits import decimals

NOT_KNOWN = "-"

_LARGE_RETURN = 100.0  # Of which hundredths say nothing.


def return_in_words(value: float) -> str:
    """Writes a return, with as many digits as say something."""
    return f"{value:,.{1 if abs(value) >= _LARGE_RETURN else decimals(value)}f}"


def count_in_words(value: float) -> str:
    """Writes a number of steps, which may be NaN for one that is not known."""
    return f"{value:,.0f}" if value == value else NOT_KNOWN
