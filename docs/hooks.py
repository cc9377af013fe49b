"""MkDocs hook: fills in what the package itself documents, so that no page repeats it.

`<!-- keys: SECTION -->` becomes tables of the configuration keys of a section, and `<!-- help: COMMAND -->`
the help text of a command. Both come from the command line of this checkout.
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
    generate = {"keys": keys_tables, "help": help_text}
    return _MARKER.sub(lambda marker: generate[marker[1]](marker[2]), markdown)


def keys_tables(section: str) -> str:
    """Returns the keys of a section as tables: common keys first, then those of each algorithm."""
    tables: dict[str, list[str]] = {"": []}
    for entry in _run("config", "--explain", section).strip().split("\n\n"):
        title, *lines = entry.splitlines()
        key, _, agents = title.partition(" ")
        doc, _, rest = " ".join(line.strip() for line in lines).rpartition(" allowed: ")
        allowed, _, default = rest.rpartition(" default: ")
        kind, _, limits = allowed.partition(", ")
        cells = (f"`{key}`", kind, f"`{default}`", limits, doc)
        row = "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
        for agent in agents.strip("()").removeprefix("of ").split(" and "):
            tables.setdefault(agent, []).append(row)
    header = "| key | type | default | range | |\n| --- | --- | --- | --- | --- |\n"
    texts = [
        f"### {agent}\n\n" * bool(agent) + header + "\n".join(rows)
        for agent, rows in sorted(tables.items())
        if rows
    ]
    return "\n\n".join(texts)


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
