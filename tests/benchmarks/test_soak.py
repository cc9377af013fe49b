"""The table of the soak: how the memory of each role grew."""

from pathlib import Path

import pytest

from benchmarks import soak
from tests.support.recorded_run import recorded_run


def test_a_role_with_few_records_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The eval actor has few records, and so has a collect actor that joined late."""
    minutes = [{"time": 60.0 * i, "memory_bytes": (100 + i) << 20} for i in range(60)]
    recorded_run(tmp_path, evaluations=minutes[:3], training=minutes)
    assert soak.main([str(tmp_path), "--warm_up", "0"]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[2:] == ["| learner | 130 | +60.0 ± 0.0 | 60 |"]
    assert shown.err.startswith("eval is left out: 3 minutes are left after the warm-up")
