"""Checkpoints of a real replay server: restored completely, or the previous one."""

import json
import shutil
import zlib
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import reverb

from actorlearner.config.schema import Config
from actorlearner.replay.checkpoints import ReplayCheckpoints, saved_transitions
from actorlearner.replay.connection import ReplayServer
from actorlearner.replay.experience_table import experience_table
from actorlearner.replay.item_size import MAX_ROWS
from actorlearner.replay.layout import make_layout
from tests.support.harm import corrupt, no_room, truncate
from tests.support.ports import unused_port
from tests.support.replay import SPECS, Replay, sample_until_blocked, with_replay

LAYOUTS = ["packed", "trajectory"]


class Saved(Replay):
    """A replay server that can be saved."""

    checkpoints: ReplayCheckpoints

    def save(self) -> bool:
        return self.checkpoints.save(ReplayServer(self.client, self.layout))

    def sealed(self) -> list[str]:
        return sorted(path.name for path in self.checkpoints.directory.glob("*.seal.json"))


Serve = Callable[..., Saved]


@pytest.fixture
def serve(small_config: Config, tmp_path: Path) -> Iterator[Serve]:
    servers = []

    def serve(**replay: Any) -> Saved:
        """Stops the server before, and starts one in its place."""
        while servers:
            servers.pop().stop()
        config = with_replay(small_config, **replay)
        layout = make_layout(config, SPECS)
        checkpoints = ReplayCheckpoints(tmp_path / "replay [lr=3e-4] *", config, layout)
        port = unused_port()
        servers.append(
            reverb.Server([experience_table(config, layout)], port, checkpoints.restoring_checkpointer())
        )
        saved = Saved(reverb.Client(f"localhost:{port}"), f"localhost:{port}", layout)
        saved.checkpoints = checkpoints
        return saved

    yield serve
    for server in servers:
        server.stop()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_restored_table_equals_the_saved_one(serve: Serve, layout: str) -> None:
    replay = serve(min_size=1, layout=layout)
    replay.fill(3 * MAX_ROWS)
    assert replay.numbers() == list(range(3 * MAX_ROWS))
    assert saved_transitions(replay.checkpoints.directory) is None
    assert replay.save()
    assert saved_transitions(replay.checkpoints.directory) == 3 * MAX_ROWS
    before = replay.status()
    replay.fill(MAX_ROWS)  # After the checkpoint.
    restored = serve(min_size=1, layout=layout)
    assert restored.status() == before
    assert restored.numbers() == list(range(3 * MAX_ROWS))


def test_sampling_continues_after_a_restore(serve: Serve) -> None:
    settings = {"min_size": 2 * MAX_ROWS, "updates_per_env_step": 1.0, "error_buffer": 2.0 * MAX_ROWS}
    replay = serve(**settings)
    replay.fill(2 * MAX_ROWS)
    assert replay.save()
    without_restore = sample_until_blocked(replay)
    restored = serve(**settings)
    assert sample_until_blocked(restored) == without_restore > 0
    restored.fill(2 * MAX_ROWS)
    assert restored.status().inserts == 4 * MAX_ROWS


def test_the_newest_two_checkpoints_are_kept(serve: Serve) -> None:
    replay = serve(min_size=1)
    for _ in range(4):
        replay.fill(MAX_ROWS)
        assert replay.save()
    assert len(replay.sealed()) == 2
    entries = {path.name for path in replay.checkpoints.directory.iterdir() if path.is_dir()}
    assert entries == {"working"} | {name.removesuffix(".seal.json") for name in replay.sealed()}
    assert not list((replay.checkpoints.directory / "working").iterdir())


def test_a_run_may_continue_in_an_earlier_time_zone(
    serve: Serve,
) -> None:
    """What was saved here comes from twelve hours further east; by its name it is of tonight."""
    replay = serve(min_size=1)
    for _ in range(2):
        replay.fill(MAX_ROWS)
        assert replay.save()
    for name in replay.sealed():
        _move_east(replay.checkpoints.directory, name.removesuffix(".seal.json"))
    for size in range(3, 6):
        replay = serve(min_size=1)
        assert replay.status().size == (size - 1) * MAX_ROWS
        replay.fill(MAX_ROWS)
        assert replay.save()
    assert serve(min_size=1).status().size == 5 * MAX_ROWS


def _move_east(directory: Path, name: str) -> None:
    here = datetime.fromisoformat(name)
    there = here.astimezone(timezone(here.utcoffset() + timedelta(hours=12))).isoformat()  # type: ignore[operator]
    seal = (directory / f"{name}.seal.json").read_text()
    written = json.loads(seal.replace(name, there))
    written["crc32"] = zlib.crc32(json.dumps(written["record"], sort_keys=True).encode())
    (directory / f"{there}.seal.json").write_text(json.dumps(written))
    (directory / f"{name}.seal.json").unlink()
    (directory / name).rename(directory / there)


def test_a_server_that_does_not_answer_loses_no_checkpoint(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    replay = serve(min_size=1)
    replay.fill(MAX_ROWS)
    assert replay.save()
    silent = ReplayServer(reverb.Client(f"localhost:{unused_port()}"), replay.layout)
    with mock.patch("actorlearner.replay.checkpoints._STATUS_TIMEOUT_S", 1):
        assert not replay.checkpoints.save(silent)
    assert "nothing is saved now: this server did not answer within 1 s" in caplog.text
    assert len(replay.sealed()) == 1


@pytest.mark.parametrize("harm", [truncate, corrupt, Path.unlink])
def test_a_damaged_checkpoint_is_skipped(
    serve: Serve, harm: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    replay = serve(min_size=1)
    for _ in range(2):
        replay.fill(MAX_ROWS)
        assert replay.save()
    newest = replay.sealed()[-1].removesuffix(".seal.json")
    harm(replay.checkpoints.directory / newest / "chunks.tfrecord")
    restored = serve(min_size=1)
    assert restored.status().size == MAX_ROWS
    assert f"the replay checkpoint {newest} is skipped" in caplog.text


def test_a_checkpoint_without_a_seal_is_skipped(serve: Serve) -> None:
    replay = serve(min_size=1)
    replay.fill(MAX_ROWS)
    assert replay.save()
    (name,) = replay.sealed()
    finished = replay.checkpoints.directory / name.removesuffix(".seal.json")
    shutil.copytree(finished, finished.with_name("9999-01-01T00:00:00"))
    assert serve(min_size=1).status().size == MAX_ROWS


def test_a_full_disk_keeps_earlier_checkpoints(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    replay = serve(min_size=1)
    replay.fill(MAX_ROWS)
    assert replay.save()
    before = replay.sealed()
    replay.fill(MAX_ROWS)
    with monkeypatch.context() as patch:
        patch.setattr("actorlearner.replay.checkpoints.seal", no_room)
        assert not replay.save()
    assert "the disk is full: the checkpoints of replay are not written to" in caplog.text
    assert replay.sealed() == before
    assert len([path for path in replay.checkpoints.directory.iterdir() if path.is_dir()]) == 2
    assert replay.save()
    assert serve(min_size=1).status().size == 2 * MAX_ROWS


def test_settings_that_the_restored_table_ignores_are_logged(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    replay = serve(min_size=1, capacity=10 * MAX_ROWS)
    replay.fill(MAX_ROWS)
    assert replay.save()
    serve(min_size=1, capacity=20 * MAX_ROWS)
    assert (
        "the restored table keeps its max items of 10; this configuration's 20 has no effect" in caplog.text
    )
