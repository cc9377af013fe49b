"""How long something takes, for people."""


def duration(seconds: float | None) -> str:
    """Hours, minutes and seconds, as in 1:02:03; `-` where it is not known."""
    if seconds is None:
        return "-"
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}"
