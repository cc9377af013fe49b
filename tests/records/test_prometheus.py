"""The endpoint that Prometheus scrapes, and the dashboard that shows what it finds."""

import json
import re
from pathlib import Path

import pytest

from actorlearner.errors import RunError
from actorlearner.network.ports import LOOPBACK
from actorlearner.records.metrics import MetricsWriter, NewestRecords, newest_of_each, written_records
from actorlearner.records.prometheus import serve_metrics
from tests.support.ports import unused_port
from tests.support.processes import REPOSITORY
from tests.support.scrape import scrape

RECORDS: NewestRecords = {
    "learner": {"time": 12.5, "train_step": 20, "loss": 0.5, "data_wait_fraction": None},
    "collect-0": {"time": 1.0, "env_steps": 7, "faults": 0},
    "collect-11": {"time": 2.0, "env_steps": 9, "faults": 1, "average_info": {"sum:heat": 4.0, "x": None}},
    "eval": {"time": 3.0, "returns": [1.0, 2.0], "average_return": 1.5},
}


def test_every_number_is_a_metric() -> None:
    records = dict(RECORDS)
    port = unused_port()
    serve_metrics((LOOPBACK, port), lambda: records)
    assert scrape(port) == {
        "actorlearner_learner_reported_timestamp_seconds": 12.5,
        "actorlearner_learner_train_step": 20.0,
        "actorlearner_learner_loss": 0.5,
        "actorlearner_collect_reported_timestamp_seconds/0": 1.0,
        "actorlearner_collect_reported_timestamp_seconds/11": 2.0,
        "actorlearner_collect_env_steps_total/0": 7.0,
        "actorlearner_collect_env_steps_total/11": 9.0,
        "actorlearner_collect_faults_total/0": 0.0,
        "actorlearner_collect_average_info/11/sum:heat": 4.0,
        "actorlearner_collect_faults_total/11": 1.0,
        "actorlearner_eval_reported_timestamp_seconds": 3.0,
        "actorlearner_eval_average_return": 1.5,
    }
    records["learner"] = {"train_step": 40}
    assert scrape(port)["actorlearner_learner_train_step"] == 40.0


def test_a_port_in_use_is_refused() -> None:
    port = unused_port()
    serve_metrics((LOOPBACK, port), lambda: RECORDS)
    with pytest.raises(RunError, match=f"metrics cannot be served on 127.0.0.1:{port}: "):
        serve_metrics((LOOPBACK, port), lambda: RECORDS)


def test_an_ipv6_address_is_named_with_brackets() -> None:
    port = unused_port()
    serve_metrics(("::1", port), lambda: RECORDS)
    with pytest.raises(RunError, match=rf"metrics cannot be served on \[::1\]:{port}: "):
        serve_metrics(("::1", port), lambda: RECORDS)


def test_the_newest_record_of_each_role_is_found_in_memory_and_in_files(tmp_path: Path) -> None:
    writer = MetricsWriter(tmp_path / "collect-3.jsonl")
    for env_steps in (1, 2):
        writer.write({"env_steps": env_steps})
    assert written_records()["collect-3"]["env_steps"] == 2
    with (tmp_path / "collect-3.jsonl").open("a") as file:
        file.write('{"env_st')  # It is just being written.
    (tmp_path / "learner.jsonl").write_text("")
    found = newest_of_each(tmp_path)
    assert {name: record["env_steps"] for name, record in found.items()} == {"collect-3": 2}


def test_the_dashboard_shows_documented_metrics() -> None:
    """docs/metrics.md has a section with a table of keys for each metrics file."""
    dashboard = json.loads((REPOSITORY / "launch" / "grafana" / "dashboard.json").read_text())
    page = (REPOSITORY / "docs" / "metrics.md").read_text()
    sections = {re.split(r"-I\.jsonl|\.jsonl", part)[0]: part for part in page.split("\n## ")}
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    metric = re.compile(r"(?:\w+\()?actorlearner_([a-z]+)_(\w+?)(?:_total)?\)?")
    shown = [match for match in map(metric.fullmatch, queries) if match is not None]
    assert len(shown) == len(queries) > 15
    for match in shown:
        assert f"`{match[2]}`" in sections[match[1]]
