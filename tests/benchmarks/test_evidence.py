"""The evidence of the docs: what is kept of a run, and that the pages show what is kept."""

import json
from pathlib import Path

import pytest

from actorlearner.agents.configuration import load_config
from actorlearner.records.run_directory import RunDirectory
from benchmarks.evidence import __main__ as evidence
from benchmarks.evidence.curves import keep


def _run(path: Path, seed: int, returns: dict[int, list[float]]) -> Path:
    directory = RunDirectory(path)
    directory.prepare(load_config("ppo_minitaur", [f"seed={seed}"]))
    manifest = json.loads(directory.manifest.read_text())
    manifest |= {
        "created": "2026-01-01T00:00:00+00:00",
        "command": f"main.py local --config ppo_minitaur --run_dir /tmp/x --set seed={seed}".split(),
    }
    directory.manifest.write_text(json.dumps(manifest))
    records = [
        {"time": 1767225600 + 60 * i, "train_step": 10 * i, "env_steps": env_steps, "returns": values}
        for i, (env_steps, values) in enumerate(returns.items())
    ]
    rolled_back = {"time": 1767225599, "train_step": 10, "env_steps": 0, "returns": [99.0]}
    records.insert(0, rolled_back)
    directory.metrics("eval").parent.mkdir()
    directory.metrics("eval").write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_run_is_kept_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, path in (("DOCS", ""), ("EVIDENCE", "evidence"), ("PICTURES", "pictures")):
        monkeypatch.setattr(evidence, name, tmp_path / path)
    (tmp_path / "pictures").mkdir()
    runs = {0: {0: [0.0, 2.0], 100: [3.0], 150: [1.0], 200: [5.0, 5.0]}, 1: {0: [1.0], 400: [9.0]}}
    for seed, returns in runs.items():
        run = _run(tmp_path / f"run-{seed}", seed, returns)
        keep(tmp_path / "evidence" / "robot", run, "an idle machine", "abc1234")
    kept = (tmp_path / "evidence" / "robot" / "ppo-0.csv").read_text()
    assert kept.startswith(
        "# command: actorlearner local --config ppo_minitaur --set seed=0\n# commit: abc1234\n"
    )
    assert kept.endswith("train_step,env_steps,minutes,average_return,deviation,episodes\n"
                         "0,0,0.00,1,1,2\n10,100,1.00,3,0,1\n"
                         "20,150,2.00,1,0,1\n30,200,3.00,5,0,2\n")  # fmt: skip
    page = tmp_path / "page.md"
    page.write_text("before\n\n<!-- evidence: robot -->\nold\n<!-- /evidence -->\n\nafter\n")
    assert list(evidence.draw()) == [page]  # it shows no picture
    table = page.read_text()
    page.write_text(table + "![](pictures/robot.png)\n")
    assert list(evidence.draw()) == [page, tmp_path / "pictures" / "robot.png"]
    assert table == (
        "before\n\n<!-- evidence: robot -->\n\n"
        "| agent | seed | at 200 env steps | after 1.0 minutes | at the end | best policy |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "| ppo | 0 | 5.00 | 3.00 | 5.00 (200 env steps, 3.0 minutes) | - |\n"
        "| ppo | 1 | 5.00 | 9.00 | 9.00 (400 env steps, 1.0 minutes) | - |\n\n"
        "In the second halves of these runs, 1 of 3 evaluations returned at most what the "
        "untrained policy did.\n\n"
        "    actorlearner local --config ppo_minitaur --set seed=SEED\n\n"
        '<details markdown="1"><summary>Commits and machines</summary>\n\n'
        "Commit abc1234, 2026-01-01, an idle machine.\n\n</details>\n\n"
        "<!-- /evidence -->\n\nafter\n"
    )
    assert page.read_text() == table + "![](pictures/robot.png)\n"


def test_endings_have_a_row_for_each_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, path in (("DOCS", ""), ("EVIDENCE", "evidence")):
        monkeypatch.setattr(evidence, name, tmp_path / path)
    for seed, last, commit in ((0, 5.0, "abc1234"), (1, 0.5, "abc1234"), (2, 0.5, "def5678")):
        run = _run(tmp_path / f"run-{seed}", seed, {0: [1.0], 100: [7.0], 200 + seed: [last]})
        keep(tmp_path / "evidence" / "tasks" / "walk", run, "an idle machine", commit)
    page = "<!-- endings: tasks -->\nold\n<!-- /endings -->\n"
    assert evidence.with_tables(page) == (
        "<!-- endings: tasks -->\n\n"
        "| configuration | seed: AverageReturn at the end (best) | env steps | minutes |\n"
        "| --- | --- | --- | --- |\n"
        "| `ppo_minitaur` | 0: 5.00 (7.00); 1: 0.50 (7.00); 2: 0.50 (7.00) | 202 | 2.0 |\n\n"
        "In the second halves of these runs, 2 of 3 evaluations returned at most what the "
        "untrained policy did.\n\n"
        '<details markdown="1"><summary>Commits and machines</summary>\n\n'
        "- `ppo_minitaur` (seed 0, 1): commit abc1234, 2026-01-01, an idle machine.\n"
        "- `ppo_minitaur` (seed 2): commit def5678, 2026-01-01, an idle machine.\n\n</details>\n\n"
        "<!-- /endings -->\n"
    )


def test_the_pages_show_what_is_kept() -> None:
    for page in sorted(evidence.DOCS.glob("*.md")):
        assert evidence.with_tables(page.read_text()) == page.read_text(), page
