"""Episodes that are played as a whole."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from actorlearner.acting import episodes
from actorlearner.process.stop import Stop


def test_an_episode_that_does_not_end_is_reported_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(episodes, "_LONG_EPISODE", 20)
    stop = Stop()
    steps: list[float] = []

    def step(action: np.ndarray) -> Any:
        steps.append(float(action))
        if len(steps) == 60:
            stop.request()
        return SimpleNamespace(observation=np.zeros(2), last=False, reward=1.0, info={})

    environment: Any = SimpleNamespace(reset=lambda: np.zeros(2), step=step)
    assert episodes.play_episode(environment, lambda *_: np.zeros(1), stop) is None
    assert len(steps) == 60
    warning = "an episode has lasted 20 env steps and goes on; environment.max_episode_steps"
    assert caplog.text.count(warning) == 1
