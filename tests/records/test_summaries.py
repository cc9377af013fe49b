"""Curves, with a real disk that is full."""

import itertools
from pathlib import Path

import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from actorlearner.records.summaries import Summaries
from tests.support.full_disk import fill, small_disk
from tests.support.heap import bytes_in_use


def steps(directory: Path, tag: str) -> list[int]:
    events = EventAccumulator(str(directory), size_guidance={"tensors": 0}).Reload()
    return [event.step for event in events.Tensors(tag)]


def test_curves_of_graphs_and_of_others_are_written_by_a_flush(tmp_path: Path) -> None:
    summaries = Summaries(tmp_path)

    @tf.function
    def train(step: tf.Tensor) -> None:
        tf.summary.scalar("loss", 0.5, step=step)

    for step in range(30):
        with summaries.writer.as_default(step=step):
            train(tf.constant(step, tf.int64))
        summaries.scalars({"rate": 1.0, "not known": None}, step)
        if step % 7 == 0:
            assert summaries.flush()
    assert steps(tmp_path, "loss") == steps(tmp_path, "rate") == list(range(29))
    assert summaries.flush()
    assert steps(tmp_path, "loss") == list(range(30))
    assert len(list(tmp_path.iterdir())) == 1
    size = next(tmp_path.iterdir()).stat().st_size
    assert summaries.flush()
    assert next(tmp_path.iterdir()).stat().st_size == size


def test_a_graph_goes_on_on_a_full_disk_and_its_curves_come_later(tmp_path: Path) -> None:
    with small_disk(tmp_path, mebibytes=1) as disk:
        summaries = Summaries(disk / "curves")

        @tf.function
        def train(step: tf.Tensor) -> None:
            with summaries.writer.as_default():
                tf.summary.scalar("loss", 0.5, step=step)

        def flushed(first: int, last: int) -> bool:
            for step in range(first, last):
                train(tf.constant(step, tf.int64))
            return summaries.flush()

        assert flushed(0, 10)
        filler = fill(disk)
        assert not flushed(10, 500)
        assert not flushed(500, 1_000)
        (file,) = (disk / "curves").iterdir()
        assert sum(1 for _ in tf.data.TFRecordDataset(str(file))) == 11
        filler.unlink()
        assert flushed(1_000, 1_010)
        assert steps(disk / "curves", "loss") == list(range(1_010))


def test_points_of_curves_leave_nothing_behind(tmp_path: Path) -> None:
    summaries = Summaries(tmp_path)
    numbers = itertools.count()

    def bytes_left(points: int) -> int:
        """Writes points; returns the bytes that stay allocated, including those outside Python."""
        before = bytes_in_use()
        for number in itertools.islice(numbers, points):
            summaries.scalars({"curve": 0.5 + number}, number)
        summaries.flush()
        return bytes_in_use() - before

    bytes_left(500)  # Warm-up: allocations that are made only once.
    assert bytes_left(500) < 500 * 50
