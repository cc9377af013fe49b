import importlib.metadata

import pytest

from actorlearner.cli.main import main
from actorlearner.process import numpy_version


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
        "install numpy==1.26.4, and from now on other packages with pip install -c requirements.lock NAME"
    )


def test_the_pin_is_that_of_the_package() -> None:
    assert f"numpy=={numpy_version._PIN}" in (importlib.metadata.requires("actorlearner") or [])
    numpy_version.check_numpy()
