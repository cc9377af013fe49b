"""Scrapes a Prometheus endpoint, and parses the answer as Prometheus does."""

import urllib.request

from prometheus_client.parser import text_string_to_metric_families

from actorlearner.network.ports import LOOPBACK


def scrape(port: int) -> dict[str, float]:
    """The value of each metric; the index of an actor follows its name after a slash."""
    with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/metrics", timeout=30) as response:
        text = response.read().decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {
        sample.name + "".join(f"/{value}" for value in sample.labels.values()): sample.value
        for sample in samples
    }
