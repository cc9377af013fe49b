"""Parses flag values: indices, counts and names of roles."""

import re

from actorlearner.process.health import ROLES


def index(text: str) -> int:
    """Reads a number counted from 0.

    Raises:
      ValueError: it is none; the message says what is allowed.
    """
    if not re.fullmatch("[0-9]{1,9}", text):
        raise ValueError("an integer from 0")
    return int(text)


def count(text: str) -> int:
    """Reads how many of something there are to be.

    Raises:
      ValueError: it is no number from 1; the message says what is allowed.
    """
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
        raise ValueError("an integer from 1")
    return int(text)


def role(text: str) -> str:
    """Reads the name of a role.

    Raises:
      ValueError: it is none of ROLES; the message says what is allowed.
    """
    if text not in ROLES:
        raise ValueError(f"{', '.join(ROLES[:-1])} or {ROLES[-1]}")
    return text
