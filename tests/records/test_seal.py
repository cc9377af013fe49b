"""Sealed files: every damage is detected."""

from collections.abc import Callable
from pathlib import Path

import pytest

from actorlearner.records.seal import (
    BrokenError,
    newest_complete,
    seal,
    seal_path,
    sealed,
    sealed_facts,
    unseal,
)
from tests.support.harm import corrupt, truncate


@pytest.fixture(name="sealed")
def _sealed(tmp_path: Path) -> Path:
    (tmp_path / "parts").mkdir()
    (tmp_path / "a.data").write_bytes(b"x" * 3_000_000)
    (tmp_path / "parts" / "b.index").write_bytes(b"")
    path = tmp_path / "seal.json"
    seal(path, [tmp_path / "a.data", tmp_path / "parts" / "b.index"], {"train_step": 7})
    return path


def test_unsealing_complete_files_returns_their_facts(sealed: Path) -> None:
    assert unseal(sealed) == {"train_step": 7}


def test_files_may_move_together(sealed: Path, tmp_path: Path) -> None:
    sealed.parent.rename(tmp_path.with_name("elsewhere"))
    assert unseal(tmp_path.with_name("elsewhere") / "seal.json") == {"train_step": 7}


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (truncate, "a.data has 2,999,990 bytes where 3,000,000 were written"),
        (corrupt, "a.data is not what was written: its checksum differs"),
        (Path.unlink, "a.data cannot be read: No such file"),
    ],
)
def test_harm_to_a_file_is_named(sealed: Path, harm: Callable[[Path], None], message: str) -> None:
    harm(sealed.parent / "a.data")
    with pytest.raises(BrokenError, match=message):
        unseal(sealed)


@pytest.mark.parametrize("harm", [truncate, Path.unlink, lambda path: path.write_text("[]")])
def test_harm_to_the_seal_is_named(sealed: Path, harm: Callable[[Path], None]) -> None:
    harm(sealed)
    with pytest.raises(BrokenError, match=r"seal\.json cannot be read"):
        unseal(sealed)


def test_no_bit_of_the_seal_can_change_unnoticed(tmp_path: Path) -> None:
    path = tmp_path / "seal.json"
    seal(path, [], {"train_step": 7})
    written = path.read_bytes()
    for position in range(len(written)):
        for bit in range(8):
            changed = bytearray(written)
            changed[position] ^= 1 << bit
            path.write_bytes(changed)
            try:
                assert unseal(path) == {"train_step": 7}  # Such as a space that became a tab.
            except BrokenError:
                continue


LEARNERS = ["ckpt-20", "ckpt-100", "ckpt-1000"]
REPLAYS = ["2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05.1234+00:00", "2026-01-02T03:04:05.2+00:00"]


def sealed_files(directory: Path, names: list[str]) -> None:
    for name in names:
        (directory / name).write_text(name)
        seal(seal_path(directory, name), [directory / name], {"is": name})


@pytest.mark.parametrize("names", [LEARNERS, REPLAYS])
def test_sealed_names_are_in_order_of_creation(tmp_path: Path, names: list[str]) -> None:
    sealed_files(tmp_path, names[::-1])
    (tmp_path / "unsealed").touch()
    assert sealed(tmp_path) == names


@pytest.mark.parametrize("names", [LEARNERS, REPLAYS])
@pytest.mark.parametrize("broken", [[], [0], [2], [1, 2], [0, 1, 2]])
def test_newest_complete_skips_damaged_files_and_does_not_read_older_ones(
    tmp_path: Path, names: list[str], broken: list[int]
) -> None:
    sealed_files(tmp_path, names)
    for number in broken:
        (tmp_path / names[number]).write_text("x")
    left_out = []
    found = newest_complete(tmp_path, lambda name, error: left_out.append((name, type(error))))
    newest = max({0, 1, 2} - set(broken), default=None)
    assert found == (None if newest is None else (names[newest], {"is": names[newest]}))
    newer = names[::-1] if newest is None else names[:newest:-1]
    assert left_out == [(name, BrokenError) for name in newer]


def test_newest_complete_can_trust_seals_without_reading_the_files(tmp_path: Path) -> None:
    sealed_files(tmp_path, LEARNERS)
    (tmp_path / "ckpt-1000").unlink()
    found = newest_complete(tmp_path, lambda name, error: pytest.fail(name), sealed_facts)
    assert found == ("ckpt-1000", {"is": "ckpt-1000"})


def test_nothing_is_sealed_in_a_directory_that_is_not_there(tmp_path: Path) -> None:
    assert newest_complete(tmp_path / "none", lambda name, error: pytest.fail(name)) is None
