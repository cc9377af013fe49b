"""TensorFlow reads checkpoints and SavedModels below directories of any name."""

import os
from pathlib import Path

import pytest
import tensorflow as tf

from actorlearner.records.plain_path import plain_path


@pytest.mark.parametrize("name", ["x[lr=3e-4]", "a*b", "what?", "with spaces", "%20 {x} #1 ü\\"])
def test_checkpoints_and_saved_models_can_be_read_in_any_directory(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    saved = tf.train.Checkpoint(value=tf.Variable(7.0))
    saved.write(str(folder / "ckpt"))
    tf.saved_model.save(tf.Module(), str(folder / "model"))
    restored = tf.train.Checkpoint()
    status = restored.read(plain_path(folder / "ckpt"))
    restored.value = tf.Variable(0.0)  # Made after the read, as the slots of optimisers are.
    status.assert_consumed()
    assert restored.value.numpy() == 7.0
    tf.saved_model.load(plain_path(folder / "model"))


def test_files_of_one_directory_share_a_descriptor(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    paths = {plain_path(folder / "ckpt") for _ in range(3)}
    folder.rename(tmp_path / "old")
    folder.mkdir()
    (folder / "new").touch()
    assert len(paths) == 1
    assert os.path.exists(plain_path(folder / "new"))
