"""Files of lines that another process appends to."""

from pathlib import Path

from actorlearner.records.lines import Tail, read_objects


def test_a_tail_takes_each_line_once_and_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "eval.jsonl"
    tail = Tail(path, from_start=True)
    assert read_objects(path, tail.lines()) == []
    with path.open("w") as file:
        file.write('{"a": 1}\n{"a": 2}\n{"a"')
        file.flush()
        assert read_objects(path, tail.lines()) == [{"a": 1}, {"a": 2}]
        assert read_objects(path, tail.lines()) == []
        file.write(": 3}\n")
    assert read_objects(path, tail.lines()) == [{"a": 3}]
