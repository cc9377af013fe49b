"""Roles on several hosts, between which links go down, are slow and lose packets."""

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from actorlearner.network.private_network import RefusedError
from tests.support.cluster import Cluster
from tests.support.hosts import Host, connected_hosts
from tests.support.processes import Command, marked_processes, wait_for

pytestmark = [pytest.mark.integration, pytest.mark.long]

_PORT = 8008
_CUT_S = 30.0
_ENV_STEP_S = 0.02
_AHEAD = 128 + 64
"""Train steps for which the learner needs no more transitions: the rate limiter's buffer, and prefetching."""


@pytest.fixture(name="hosts")
def _hosts() -> Iterator[list[Host]]:
    """The hosts of the replay server and learner, of the eval actor, and of each of two collect actors."""
    try:
        with connected_hosts(4) as hosts:
            yield hosts
    except RefusedError as error:
        pytest.skip(f"no hosts can be made here: {error}")


class _Run:
    """All roles of a run, each on its host."""

    def __init__(self, cluster: Cluster, hosts: list[Host]) -> None:
        self.cluster = cluster
        self.server = cluster.replay_server(hosts[0])
        self.learner = cluster.learner(hosts[0])
        self.evaluator = cluster.eval_actor(hosts[1])
        self.actors = [cluster.collect_actor(index, host) for index, host in enumerate(hosts[2:])]

    @property
    def clients(self) -> list[Command]:
        return [self.learner, self.evaluator, *self.actors]

    def wait_until_all_act(self) -> None:
        """Waits until the collect actors act with a trained policy."""
        for index in range(len(self.actors)):
            self.cluster.wait_for(f"collect-{index}", "policy_train_step", 1, *self.clients)

    def end(self) -> None:
        """Waits for the end of all roles, and checks that nothing was lost."""
        for command in self.clients:
            assert command.finish() == 0, command.err
        self.server.interrupt(signal.SIGTERM)
        assert self.server.finish() == 143, self.server.err
        account = self.cluster.account()
        assert (account.lost, account.duplicated, account.unknown, account.torn) == (0, 0, 0, 0), account
        assert self.cluster.policies_back(*range(len(self.actors))) == []


@pytest.mark.parametrize("forgotten", [False, True], ids=["link_down", "firewall_forgets"])
def test_a_run_goes_on_without_an_actor_that_is_cut_off_and_takes_it_back(
    start: Callable[..., Command], mark: str, tmp_path: Path, hosts: list[Host], forgotten: bool
) -> None:
    settings = ("collect.actors=2", "learn.train_steps=6000", "evaluate.interval=6000")
    cluster = Cluster(start, tmp_path, f"{hosts[0].address}:{_PORT}", _ENV_STEP_S, *settings)
    run = _Run(cluster, hosts)
    run.wait_until_all_act()

    host = hosts[-1]
    began = time.monotonic()
    _cut(host, forgotten)
    before = cluster.last("learner", "train_step")
    cluster.wait_for("learner", "train_step", before + 2 * _AHEAD, *run.clients)
    waits = "waiting for the replay server, which does not answer; transitions are kept until it does"
    wait_for(
        lambda: waits in cluster.log("collect-actor-1", "collect-1"), "the actor to log what it waits for"
    )
    time.sleep(max(0.0, began + _CUT_S - time.monotonic()))  # The test needs a cut of this length.
    acted = cluster.last("collect-1", "env_steps")
    trained = cluster.last("learner", "train_step")
    healed = time.monotonic()
    host.plug_in()
    cluster.wait_for("collect-1", "env_steps", acted + 1, *run.clients)
    print(
        f"\nafter {healed - began:.1f} s without a link it acted again in {time.monotonic() - healed:.1f} s"
    )
    cluster.wait_for("collect-1", "policy_train_step", trained, *run.clients)

    run.end()
    assert marked_processes(mark) == []


def _cut(host: Host, forgotten: bool) -> None:
    """Cuts a host off: either visibly (link down), or silently, with connections that stay broken."""
    if forgotten:
        host.cable.silent = True
        host.cable.forget()
    else:
        host.unplug()


def test_a_run_finishes_over_a_slow_and_lossy_link(
    start: Callable[..., Command], mark: str, tmp_path: Path, hosts: list[Host]
) -> None:
    settings = ("collect.actors=2", "learn.train_steps=2000", "evaluate.interval=2000")
    cluster = Cluster(start, tmp_path, f"{hosts[0].address}:{_PORT}", _ENV_STEP_S, *settings)
    hosts[-1].cable.delay_s, hosts[-1].cable.loss = 0.05, 0.01
    run = _Run(cluster, hosts)
    run.wait_until_all_act()
    run.end()
    assert marked_processes(mark) == []
    near, far = (_rate(cluster.records(f"collect-{index}")[1:], "env_steps") for index in range(2))
    trained = _rate(cluster.records("learner"), "train_step")
    print(f"\n50 ms and 1 % of loss each way: {far:.1f} env steps/s, beside {near:.1f} without; ", end="")
    print(f"{trained:.1f} train steps/s")


def _rate(records: list[dict[str, Any]], key: str) -> float:
    """How fast a counter grew from the first record to the last."""
    first, last = records[0], records[-1]
    return float((last[key] - first[key]) / (last["time"] - first["time"]))
