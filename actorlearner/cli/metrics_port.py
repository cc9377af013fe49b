"""The flags of a Prometheus endpoint."""

import ipaddress

from actorlearner.cli.command import Flag, Options
from actorlearner.config.addresses import read_port
from actorlearner.errors import ConfigurationError
from actorlearner.process.ports import LOOPBACK


def _host(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise ValueError(f"an IP address of this machine, as in {LOOPBACK} or 0.0.0.0") from None


METRICS_FLAGS = {
    "metrics_port": Flag(
        "PORT", "serve the metrics for Prometheus on this port; off by default", read_port, required=False
    ),
    "metrics_host": Flag(
        "ADDRESS",
        f"the address that --metrics_port listens on; {LOOPBACK}, so that only this machine gets there, "
        "unless told otherwise",
        _host,
        required=False,
    ),
}


def take_metrics_address(options: Options) -> tuple[str, int] | None:
    """Takes these flags out of the options; returns where the metrics are to be served, None for nowhere.

    Raises:
      ConfigurationError: an address is given without a port.
    """
    host, port = (options.pop(f"metrics_{part}", None) for part in ("host", "port"))
    if port is None and host is not None:
        raise ConfigurationError([f"--metrics_host: {host!r} cannot be used; allowed: with --metrics_port"])
    return None if port is None else (host or LOOPBACK, port)
