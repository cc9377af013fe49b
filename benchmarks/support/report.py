"""The report of a benchmark: rows with their figures, printed as a table and saved as JSON."""

import dataclasses
import json
import os
import platform
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.support.markdown import table


@dataclasses.dataclass(frozen=True)
class Row:
    """One measured quantity, the stock TF-Agents way beside ours.

    Attributes:
      benchmark: the benchmark's name.
      what: what was measured, with its unit.
      stock: the figure that ours is compared with: stock TF-Agents', or what `what` names instead; None where
        ours stands alone.
      ours: the figure of this project.
      figure: the figure that the goal is about: ours, or its ratio to `stock`.
      goal: the bound on `figure`; None for what is only stated.
      at_least: whether the goal is a lower bound, else an upper one.
      settings: what was set on both sides (environments, threads, publishing, ...), or on each.
    """

    benchmark: str
    what: str
    stock: float | None
    ours: float
    figure: float
    goal: float | None
    at_least: bool
    settings: str = ""

    @property
    def reached(self) -> bool:
        """Whether the figure is within the goal, if there is one."""
        if self.goal is None:
            return True
        return self.figure >= self.goal if self.at_least else self.figure <= self.goal

    @property
    def missed(self) -> str | None:
        """A line with the row, its figure and its goal; None where the goal was reached."""
        if self.reached:
            return None
        _, what, settings, *_, figure, goal, _ = cells(self)
        return f"{self.benchmark}: {what} ({settings}): {figure}, goal {goal}"


HEADER = ("benchmark", "what", "settings", "baseline", "ours", "figure", "goal", "reached")
"""The columns of a table; `figure` is ours, or its ratio to the baseline."""


def cells(row: Row) -> tuple[str, ...]:
    """Returns the row as text, in the order of HEADER."""
    bound = "≥" if row.at_least else "≤"
    return (
        row.benchmark,
        row.what,
        row.settings,
        "" if row.stock is None else number(row.stock),
        number(row.ours),
        number(row.figure),
        "" if row.goal is None else f"{bound} {number(row.goal)}",
        "" if row.goal is None else ("yes" if row.reached else "no"),
    )


def number(value: float) -> str:
    """Formats with three significant digits, or as a whole number from 100 on."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def save(directory: Path, name: str, rows: Sequence[Row], details: dict[str, Any], took_s: float) -> Path:
    """Writes DIRECTORY/NAME.json with the rows and all that was measured for them."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.json"
    record = {
        "benchmark": name,
        "time": time.time(),
        "took_s": round(took_s, 1),
        "machine": machine(),
        "rows": [dataclasses.asdict(row) | {"reached": row.reached} for row in rows],
        "details": details,
    }
    path.write_text(json.dumps(record, indent=2) + "\n")
    return path


def load(directory: Path, name: str = "*") -> list[Row]:
    """Reads the rows of DIRECTORY/NAME.json, or of all such files in the order of their names."""
    fields = {field.name for field in dataclasses.fields(Row)}
    return [
        Row(**{key: value for key, value in row.items() if key in fields})
        for record in _load(directory, name)
        for row in record["rows"]
    ]


def load_lines(directory: Path) -> list[str]:
    """Reads the extra lines of all JSON files in `directory`; each file's lines follow an empty line."""
    return [line for record in _load(directory) for line in lines(record["details"])]


def lines(details: dict[str, Any]) -> list[str]:
    """Returns the extra lines of a benchmark, in Markdown, after an empty line."""
    extra: list[str] = details.get("lines", [])
    return ["", *extra] if extra else []


def _load(directory: Path, name: str = "*") -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(directory.glob(f"{name}.json"))]


def machine() -> str:
    """Returns the number of cores and the name of the processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{os.cpu_count()} cores, {models[0] if models else platform.machine()}"


def commit() -> str:
    """Returns the short name of this checkout's commit."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def markdown(rows: Sequence[Row]) -> str:
    """Returns the rows as a Markdown table."""
    return "\n".join(table(HEADER, map(cells, rows)))
