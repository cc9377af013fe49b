"""Sealed files: whole, or known not to be."""

from collections.abc import Callable
from pathlib import Path

import pytest

from actorlearner.seal import BrokenError, seal, unseal, write_atomically
from tests.support.harm import corrupt, truncate


@pytest.fixture(name="sealed")
def _sealed(tmp_path: Path) -> Path:
    (tmp_path / "parts").mkdir()
    (tmp_path / "a.data").write_bytes(b"x" * 3_000_000)
    (tmp_path / "parts" / "b.index").write_bytes(b"")
    path = tmp_path / "seal.json"
    seal(path, [tmp_path / "a.data", tmp_path / "parts" / "b.index"], {"train_step": 7})
    return path


def test_whole_files_give_their_facts(sealed: Path) -> None:
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


def test_a_text_that_cannot_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, "before")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "\ud800")
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
