"""The visible text of a report."""

import re
from pathlib import Path


def page_text(path: Path) -> str:
    """The words of an HTML file, each run of white space as one space."""
    page = path.read_text()
    return re.sub(r"\s+", " ", re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL))
