"""How a report writes numbers."""

NOT_KNOWN = "-"

_LARGE_RETURN = 100.0  # Of which hundredths say nothing.


def return_in_words(value: float) -> str:
    """Writes a return, with as many digits as say something."""
    return f"{value:,.1f}" if abs(value) >= _LARGE_RETURN else f"{value:,.2f}"


def count_in_words(value: float) -> str:
    """Writes a number of steps, which may be NaN for one that is not known."""
    return f"{value:,.0f}" if value == value else NOT_KNOWN
