"""The learner's wait for transitions reports which replay server has none."""

import dataclasses

import pytest

from actorlearner.config.schema import Config
from actorlearner.learning.outputs import Outputs
from actorlearner.process import waiting
from actorlearner.process.stop import Stop
from actorlearner.replay.status import ReplayStatus
from actorlearner.roles import learner
from tests.support.replay import with_replay


@dataclasses.dataclass
class Replay:
    """Servers that hold a fixed number of transitions."""

    held: dict[str, int]

    def status(self, timeout_s: int) -> ReplayStatus:
        return ReplayStatus(0, 0, 0)

    def sizes(self, timeout_s: int) -> dict[str, int]:
        return self.held


class StopsAtOnce(Stop):
    """The first wait for it requests it."""

    def wait(self, timeout_s: float) -> bool:
        self.request()
        return super().wait(timeout_s)


@pytest.mark.parametrize(
    ("held", "message"),
    [
        (
            {"a:1": 300, "b:1": 0, "c:1": 7},
            "waiting for 300 transitions in each replay server: b:1 holds 0, c:1 holds 7 (collect actor I "
            "writes to server I modulo 3)",
        ),
        ({"a:1": 7}, "waiting for 300 transitions in each replay server, for"),
    ],
)
def test_a_server_that_no_actor_writes_to_is_named(
    small_config: Config,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    held: dict[str, int],
    message: str,
) -> None:
    monkeypatch.setattr(waiting, "_REPORT_INTERVAL_S", 0.0)
    config = with_replay(small_config, min_size=300)
    assert not learner._wait_for_replay(config, Replay(held), StopsAtOnce(), Outputs())
    assert message in caplog.text


def test_the_wait_ends_once_every_server_has_min_size(small_config: Config) -> None:
    config = with_replay(small_config, min_size=300)
    assert learner._wait_for_replay(config, Replay({"a:1": 300, "b:1": 301}), Stop(), Outputs())
