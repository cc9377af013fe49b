"""MkDocs hook: fills in what the package itself documents, so that no page repeats it.

`<!-- keys: SECTION -->` becomes a table of the configuration keys of a section, and `<!-- help: COMMAND -->` the
help text of a command. Both come from the command line of this checkout.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

_REPOSITORY = Path(__file__).resolve().parent.parent
_MARKER = re.compile(r"<!-- (keys|help): ([a-z-]+) -->")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replaces the markers of a page."""
    generate = {"keys": keys_table, "help": help_text}
    return _MARKER.sub(lambda marker: generate[marker[1]](marker[2]), markdown)


def keys_table(section: str) -> str:
    """Returns the keys of a section as a Markdown table."""
    rows = ["| key | type | default | range | |", "| --- | --- | --- | --- | --- |"]
    for entry in _run("config", "--explain", section).strip().split("\n\n"):
        title, *lines = entry.splitlines()
        text = " ".join(line.strip() for line in lines)
        doc, _, text = text.rpartition(" allowed: ")
        allowed, _, default = text.rpartition(" default: ")
        key, _, agents = title.partition(" ")
        kind, _, limits = allowed.partition(", ")
        doc = f"{doc} {agents[1:-1].capitalize()} only." if agents else doc
        cells = (f"`{key}`", kind, f"`{default}`", limits, doc)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)


def help_text(command: str) -> str:
    """Returns what `actorlearner COMMAND --help` prints, as a code block."""
    return f"```text\n{_run(command, '--help').rstrip()}\n```"


def _run(*arguments: str) -> str:
    environment = os.environ | {"COLUMNS": "100", "PYTHONPATH": str(_REPOSITORY), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "actorlearner", *arguments]
    done = subprocess.run(
        command, cwd=_REPOSITORY, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout
