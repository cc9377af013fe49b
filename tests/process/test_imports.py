"""The check of NumPy, and the garbage collector during and after imports."""

import gc
import importlib.metadata

import pytest

from actorlearner.cli.main import main
from actorlearner.process import tensorflow_setup
from actorlearner.process.tensorflow_setup import without_gc


@pytest.fixture(autouse=True)
def _only_here() -> None:
    """Prevents gc.freeze from keeping the garbage of other tests forever."""
    gc.collect()


def test_the_collector_does_not_see_objects_of_the_context() -> None:
    with without_gc():
        assert not gc.isenabled()
        made: list[object] = []
        assert any(tracked is made for tracked in gc.get_objects())
    assert gc.isenabled()
    assert not any(tracked is made for tracked in gc.get_objects())


def test_the_collector_is_as_before_even_after_an_exception() -> None:
    with pytest.raises(ImportError), without_gc():
        raise ImportError
    assert gc.isenabled()
    gc.disable()
    try:
        with without_gc():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("arguments", [["local", "--config", "sac_pendulum"], ["rollout", "runs/x"]])
def test_numpy_2_is_refused_in_one_line_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    version = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata, "version", lambda name: "2.3.1" if name == "numpy" else version(name)
    )
    assert main(arguments) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        "actorlearner: error: numpy 2.3.1 is installed, but TensorFlow and Reverb need numpy==1.26.4: pip "
        "install numpy==1.26.4; add other packages with pip freeze --exclude-editable > installed.txt, then "
        "pip install -c installed.txt NAME"
    )


def test_the_pin_is_that_of_the_package() -> None:
    assert f"numpy=={tensorflow_setup._PIN}" in (importlib.metadata.requires("actorlearner") or [])
    tensorflow_setup.check_numpy()
