"""Formatting of durations."""


def duration(seconds: float | None) -> str:
    """Returns hours, minutes and seconds, such as 1:02:03; `-` for None."""
    if seconds is None:
        return "-"
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}"
