"""Serves the newest record of each metrics file to Prometheus."""

import math
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from actorlearner.config.addresses import join_address
from actorlearner.errors import RunError
from actorlearner.records.metrics import NewestRecords

_PREFIX = "actorlearner"
_COUNTERS = frozenset({"env_steps", "episodes", "faults", "inserts", "samples"})
"""Keys whose values only grow until the role restarts."""

_TIME = "time"
_INFO = "average_info"  # The only mapping; each of its values is a sample.
_REPORTED = "reported_timestamp_seconds"


def serve_metrics(address: tuple[str, int], records: Callable[[], NewestRecords]) -> None:
    """Serves metrics on a thread until the process ends.

    Every number of a record is a metric actorlearner_FILE_KEY, where FILE is best, collect, eval, learner or
    replay. Metrics of actors have the label `actor`. Metrics of `average_info` have the label `metric`, the
    entry of `environment.info_metrics`. Metrics that only grow are counters and end in _total. Unknown values
    have no sample. `..._reported_timestamp_seconds` is the time of the record.

    Args:
      address: host and port to listen on.
      records: returns the newest records; called at every scrape, on another thread.

    Raises:
      RunError: the port cannot be used.
    """
    registry = CollectorRegistry()
    registry.register(_RecordCollector(records))
    host, port = address
    try:
        start_http_server(port, host, registry)
    except OSError as error:
        raise RunError(f"metrics cannot be served on {join_address(host, port)}: {error.strerror}") from error


class _RecordCollector(Collector):
    """Converts records to metrics at each scrape."""

    def __init__(self, records: Callable[[], NewestRecords]) -> None:
        self._records = records

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for name, record in sorted(self._records().items()):
            file, _, actor = name.partition("-")
            for key, value in record.items():
                labels = {"actor": actor} if actor else {}
                if isinstance(value, (int, float)) and math.isfinite(value):
                    self._add(families, file, labels, key, float(value))
                elif key == _INFO:
                    known = {name: number for name, number in value.items() if number is not None}
                    for metric, number in known.items():
                        self._add(families, file, labels | {"metric": metric}, key, number)
        yield from families.values()

    def _add(
        self, families: dict[str, Metric], file: str, labels: Mapping[str, str], key: str, value: float
    ) -> None:
        metric = f"{_PREFIX}_{file}_{_REPORTED if key == _TIME else key}"
        if metric not in families:
            what = "when the newest record was written, in Unix seconds" if key == _TIME else key
            family = CounterMetricFamily if key in _COUNTERS else GaugeMetricFamily
            families[metric] = family(metric, f"{what} of metrics/{file}*.jsonl", labels=list(labels))
        families[metric].add_metric(list(labels.values()), value)  # type: ignore[attr-defined]
