"""The command of a container, and the index of a collect actor in it."""

import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import dns.message
import dns.rrset
import pytest

from actorlearner.cli.main import make_parser
from actorlearner.process import heartbeat
from actorlearner.process.health import check
from actorlearner.records.run_directory import RunDirectory
from launch import container
from launch.container import command, index, mark_heartbeats, names_of

ADDRESS = "172.19.0.7"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["run_collect-actor_3.run_default"], 2),  # docker-compose
        (["run-collect-actor-12.run_default"], 11),  # docker compose
        (["8f2c_my-collect-actor-9_collect-actor_1.net"], 0),
        (["learner", "run-collect-actor-2.run_default"], 1),
        ([], 0x130007),
        (["run-collect-actor-run-1a2b.run_default"], 0x130007),
        (["run-collect-actor-0.net"], 0x130007),
        (["172-19-0-7.collect-actor-5.cluster.local"], 0x130007),
    ],
)
def test_the_index_is_the_number_of_the_container_or_the_end_of_its_address(
    names: Sequence[str], expected: int
) -> None:
    assert index(ADDRESS, names) == expected


def test_ipv6_addresses_that_end_alike_give_different_indices() -> None:
    """Of pods on two nodes, only the middle of the address differs."""
    first, second = (index(f"fd00:10:244:{node}::7", []) for node in (1, 2))
    assert first != second
    assert max(first, second) < 10**9
    assert index("fd00:10:244:0001:0::7", []) == first
    assert index("fd00::7", ["run_collect-actor_3.run_default"]) == 2


def _found(*addresses: str) -> Callable[..., list[Any]]:
    """What getaddrinfo returns for a host with these addresses."""
    families = [socket.AF_INET6 if ":" in address else socket.AF_INET for address in addresses]
    found = [(family, 1, 6, "", (address, 0)) for family, address in zip(families, addresses, strict=True)]
    return lambda *given, **named: found


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [(["fd00::7"], "fd00::7"), (["fd00::7", ADDRESS], ADDRESS), (["fe80::7%e0"], "fe80::7")],
)
def test_a_container_may_have_ipv6_only(
    addresses: list[str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container.socket, "getaddrinfo", _found(*addresses))
    monkeypatch.setattr(container, "names_of", lambda address: [])
    assert container.own_index() == index(expected, [])


def test_the_address_of_a_pod_may_be_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_IP", "fd00:10:244:1::7")
    assert container.own_index() == index("fd00:10:244:1::7", [])


def test_an_invalid_address_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unknown(*given: Any, **named: Any) -> NoReturn:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setenv("POD_IP", "node-7")
    with pytest.raises(SystemExit, match="2"):
        container.own_index()
    monkeypatch.delenv("POD_IP")
    monkeypatch.setattr(container.socket, "gethostname", lambda: "here")
    monkeypatch.setattr(container.socket, "getaddrinfo", unknown)
    with pytest.raises(SystemExit, match="2"):
        container.own_index()
    assert capsys.readouterr().err.splitlines() == [
        "POD_IP 'node-7': has to be an IPv4 or IPv6 address",
        "the address of 'here' is not known (Name or service not known): give --actor_index",
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("learner --config c", "learner --run_dir /run_dir --config c"),
        ("learner --run_dir there", "learner --run_dir /run_dir --run_dir there"),
        ("collect-actor --set a=1", "collect-actor --run_dir /run_dir --actor_index 6 --set a=1"),
        ("collect-actor --actor_index 4", "collect-actor --run_dir /run_dir --actor_index 4"),
        ("collect-actor --actor_index=4", "collect-actor --run_dir /run_dir --actor_index=4"),
        ("doctor", "doctor"),
        ("--help", "--help"),
        ("", ""),
    ],
)
def test_container_settings_become_arguments_of_the_role(
    arguments: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "own_index", lambda: 6)
    assert command(arguments.split()) == ["actorlearner", *expected.split()]


@pytest.mark.parametrize("own", ["--run_dir there --actor_index 4", "--run_dir=there --actor_index=4"])
def test_the_containers_own_arguments_count(own: str) -> None:
    given = ["collect-actor", "--config", "c", "--replay_address", "h:1", *own.split()]
    arguments = make_parser().parse_args(command(given)[1:])
    assert (arguments.run_dir, arguments.actor_index) == ("there", 4)


def test_a_heartbeat_that_a_killed_container_left_is_not_healthy(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)

    def is_healthy() -> bool:
        [health] = check(["learner"], directory)
        return health.healthy

    for restarts in range(2):
        mark_heartbeats(directory.heartbeats)
        heartbeat.begin(directory.heartbeat("learner"))
        heartbeat.beat("train step 1")
        assert is_healthy()
        size = directory.heartbeat("learner").stat().st_size
        mark_heartbeats(directory.heartbeats)
        assert not is_healthy()
        assert directory.heartbeat("learner").stat().st_size == size
        assert heartbeat.read_heartbeat(directory.heartbeat("learner")).restarts == restarts
    heartbeat.end()


def test_only_a_collect_actor_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another role may be in a container without any network."""
    monkeypatch.setattr(container, "own_index", lambda: pytest.fail("looked up"))
    assert command(["replay-server"]) == [
        "actorlearner", "replay-server", "--run_dir", "/run_dir",
    ]  # fmt: skip


def test_machines_tell_their_actors_apart_by_the_first_index(monkeypatch: pytest.MonkeyPatch) -> None:
    assert index(ADDRESS, ["run_collect-actor_3.run_default"], first=100) == 102
    monkeypatch.setenv("FIRST_ACTOR_INDEX", "100")
    monkeypatch.setattr(container, "names_of", lambda address: ["run_collect-actor_3.run_default"])
    monkeypatch.setattr(container.socket, "getaddrinfo", _found(ADDRESS))
    assert container.own_index() == 102


@pytest.mark.parametrize("value", ["", "-1", "a", "1.5"])
def test_an_invalid_first_index_is_refused(
    value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FIRST_ACTOR_INDEX", value)
    with pytest.raises(SystemExit) as ended:
        container.own_index()
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"FIRST_ACTOR_INDEX {value!r}: has to be an integer from 0\n"


@pytest.mark.parametrize(
    ("address", "reverse"),
    [(ADDRESS, "7.0.19.172.in-addr.arpa."), ("fd00::7", "7." + "0." * 27 + "0.0.d.f.ip6.arpa.")],
)
def test_the_name_server_is_asked(address: str, reverse: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server on the loopback interface."""
    asked: set[str] = set()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(30)
        monkeypatch.setattr(container, "_NAME_SERVER", server.getsockname())

        def serve() -> None:
            """Answers until an empty message: a late answer makes the resolver ask again."""
            while (received := server.recvfrom(512))[0]:
                wire, client = received
                query = dns.message.from_wire(wire)
                [question] = query.question
                asked.add(question.to_text())
                answer = dns.message.make_response(query)
                target = "run_collect-actor_3.run_default."
                answer.answer.append(dns.rrset.from_text(question.name, 600, "IN", "PTR", target))
                server.sendto(answer.to_wire(), client)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            assert names_of(address) == ["run_collect-actor_3.run_default"]
        finally:
            server.sendto(b"", server.getsockname())
            thread.join()
    assert asked == {f"{reverse} IN PTR"}


def test_without_a_name_server_there_are_no_names(monkeypatch: pytest.MonkeyPatch, free_port: int) -> None:
    monkeypatch.setattr(container, "_NAME_SERVER", ("127.0.0.1", free_port))
    assert names_of(ADDRESS) == []
