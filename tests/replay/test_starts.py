"""The counts of a role's starts, which outlive the role, its run directory and the replay server."""

from collections.abc import Sequence
from pathlib import Path

import reverb

from actorlearner.config.schema import Config
from actorlearner.process.stop import Stop
from actorlearner.replay.checkpoints import ReplayCheckpoints
from actorlearner.replay.layout import make_layout
from actorlearner.replay.monitor import ServerMonitor
from actorlearner.replay.starts import count_start, starts_table
from actorlearner.replay.tables import experience_table, start_server
from tests.support.replay import SPECS


def begin(client: reverb.Client, roles: Sequence[str]) -> list[int]:
    return [count_start(client, role, Stop()) for role in roles]


def test_each_role_counts_its_own_starts_also_after_a_restore(
    small_config: Config, tmp_path: Path, free_port: int
) -> None:
    layout = make_layout(small_config, SPECS)
    checkpoints = ReplayCheckpoints(tmp_path, small_config, layout)
    experience = experience_table(small_config, layout)
    server = start_server([experience, starts_table()], free_port, checkpoints)
    client = reverb.Client(f"localhost:{free_port}")
    actors = [f"collect-actor-{i}" for i in range(20)]

    assert begin(client, actors) == [0] * 20
    assert begin(client, ["eval-actor"]) == [0]
    assert begin(client, actors) == [1] * 20
    assert begin(client, [actors[7]]) == [2]
    assert client.server_info(10)["lives"].current_size == 21
    assert checkpoints.save(client, ServerMonitor(client, layout))
    server.stop()

    server = start_server([experience_table(small_config, layout), starts_table()], free_port, checkpoints)
    assert begin(reverb.Client(f"localhost:{free_port}"), actors[6:9]) == [2, 3, 2]
    server.stop()


def test_a_run_that_was_saved_without_counts_is_restored(
    small_config: Config, tmp_path: Path, free_port: int
) -> None:
    """Checkpoints of earlier versions have no counts."""
    layout = make_layout(small_config, SPECS)
    checkpoints = ReplayCheckpoints(tmp_path, small_config, layout)
    server = start_server([experience_table(small_config, layout)], free_port, checkpoints)
    client = reverb.Client(f"localhost:{free_port}")
    assert checkpoints.save(client, ServerMonitor(client, layout))
    server.stop()

    server = start_server([experience_table(small_config, layout), starts_table()], free_port, checkpoints)
    assert begin(reverb.Client(f"localhost:{free_port}"), ["collect-actor-0"]) == [0]
    server.stop()
