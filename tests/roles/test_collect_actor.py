"""The loop of a collect actor: which policy takes each env step, and when it waits."""

from types import SimpleNamespace
from typing import Any

from actorlearner.process.stop import Stop
from actorlearner.roles.collect_actor import _act
from actorlearner.variables.container import PolicyOrder


class Collecting:
    """In place of a Collector: it ends after so many env steps, and records their policies."""

    def __init__(self, env_steps: int) -> None:
        self.env_steps = env_steps
        self.train_steps: list[int] = []
        self.waits = 0

    @property
    def ended(self) -> bool:
        return len(self.train_steps) >= self.env_steps

    def step(self, policy: Any, order: PolicyOrder) -> None:
        self.train_steps.append(order.train_step)

    def wait_for_policy(self, seconds: float) -> None:
        self.waits += 1


class Policies:
    """In place of the newest policy: the next one has arrived whenever it is asked."""

    arrived = True
    function = None
    order = PolicyOrder(0, 0)

    def refresh(self) -> bool:
        self.order = PolicyOrder(0, self.order.train_step + 1)
        return True


def act(collector: Any, pace: Any, fragment: int) -> None:
    policy: Any = Policies()
    _act(collector, policy, pace, fragment, Stop())


def test_without_a_pace_the_newest_policy_takes_each_env_step() -> None:
    collector = Collecting(env_steps=3)
    act(collector, None, fragment=2)
    assert collector.train_steps == [1, 2, 3]


def test_with_a_pace_one_policy_takes_a_whole_fragment() -> None:
    """The pace allows a fragment every second time. The last fragment is cut short at the end."""
    collector, answers = Collecting(env_steps=5), iter([False, True] * 3)
    arrived: list[int] = []
    collected: list[int] = []
    pace = SimpleNamespace(
        policy_arrived=arrived.append,
        may_collect=lambda: next(answers),
        collected=lambda: collected.append(len(collector.train_steps)),
    )
    act(collector, pace, fragment=2)
    assert collector.train_steps == [2, 2, 4, 4, 6]
    assert collector.waits == 3
    assert arrived == [1, 2, 3, 4, 5, 6]
    assert collected == [2, 4, 5]
