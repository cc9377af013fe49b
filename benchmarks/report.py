"""What a benchmark reports: rows with their figures, printed as a table and kept as JSON."""

import dataclasses
import json
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.markdown import table


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
    """

    benchmark: str
    what: str
    stock: float | None
    ours: float
    figure: float
    goal: float | None
    at_least: bool

    @property
    def reached(self) -> bool:
        """Whether the figure is within the goal, if there is one."""
        if self.goal is None:
            return True
        return self.figure >= self.goal if self.at_least else self.figure <= self.goal


HEADER = ("benchmark", "what", "beside", "ours", "figure", "goal", "reached")
"""The columns of a table; `figure` is ours, or its ratio to what is beside it."""


def cells(row: Row) -> tuple[str, ...]:
    """The row as text, in the order of HEADER."""
    bound = "≥" if row.at_least else "≤"
    return (
        row.benchmark,
        row.what,
        "" if row.stock is None else number(row.stock),
        number(row.ours),
        number(row.figure),
        "" if row.goal is None else f"{bound} {number(row.goal)}",
        "" if row.goal is None else ("yes" if row.reached else "no"),
    )


def number(value: float) -> str:
    """Three significant digits, more for whole thousands."""
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


def load(directory: Path) -> list[Row]:
    """Reads the rows of every JSON file in `directory`, in the order of their names."""
    fields = [field.name for field in dataclasses.fields(Row)]
    return [
        Row(**{name: row[name] for name in fields}) for record in _load(directory) for row in record["rows"]
    ]


def load_lines(directory: Path) -> list[str]:
    """Reads what the JSON files in `directory` have to say beside their rows, each after an empty line."""
    return [line for record in _load(directory) for line in lines(record["details"])]


def lines(details: dict[str, Any]) -> list[str]:
    """What a benchmark says beside its rows, in Markdown, after an empty line: `lines` of its details."""
    said: list[str] = details.get("lines", [])
    return ["", *said] if said else []


def _load(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(directory.glob("*.json"))]


def machine() -> str:
    """The processor and the number of cores."""
    import os

    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{os.cpu_count()} cores, {models[0] if models else platform.machine()}"


def markdown(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    return "\n".join(table(HEADER, map(cells, rows)))
