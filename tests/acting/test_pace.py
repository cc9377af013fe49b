"""How much an actor collects with each policy."""

from actorlearner.acting.pace import Pace
from actorlearner.agents.experience import Iteration

ENV_STEPS, ACTORS, FRAGMENT, TRAIN_STEPS = 800, 2, 100, 40


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def make(lag: int = 0) -> tuple[Pace, Clock]:
    clock = Clock()
    return Pace(Iteration(ENV_STEPS, 10, lag), FRAGMENT, ACTORS, TRAIN_STEPS, clock), clock


def collect(pace: Pace) -> int:
    count = 0
    while pace.may_collect:
        pace.collected()
        count += 1
    return count


def test_an_actor_collects_its_share_of_each_policy() -> None:
    pace, _ = make()
    for iteration in range(3):
        pace.policy_arrived(iteration * TRAIN_STEPS)
        assert collect(pace) == ENV_STEPS // ACTORS // FRAGMENT


def test_with_a_lag_it_collects_ahead() -> None:
    pace, _ = make(lag=1)
    pace.policy_arrived(0)
    assert collect(pace) == 8
    pace.policy_arrived(TRAIN_STEPS)
    assert collect(pace) == 4
    pace.policy_arrived(3 * TRAIN_STEPS)
    assert collect(pace) == 8, "it missed a policy"


def test_a_share_does_not_grow_while_policies_pass() -> None:
    pace, _ = make()
    for iteration in range(5):
        pace.policy_arrived(iteration * TRAIN_STEPS)
    assert collect(pace) == 4


def test_it_takes_over_the_share_of_an_actor_that_died() -> None:
    pace, clock = make()
    pace.policy_arrived(0)
    assert collect(pace) == 4
    clock.now = 0.9
    assert collect(pace) == 0
    clock.now = 1.0
    assert collect(pace) == 4
    clock.now = 1.5
    assert collect(pace) == 0, "what comes after it is waited for"
    clock.now = 2.0
    assert collect(pace) == 4


def test_actors_take_over_a_part_each() -> None:
    clock = Clock()
    pace = Pace(Iteration(900, 10, 0), 100, 3, TRAIN_STEPS, clock)
    pace.policy_arrived(0)
    assert collect(pace) == 3
    clock.now = 1.0
    assert collect(pace) == 2


def test_its_patience_follows_the_time_between_policies() -> None:
    """In a slow simulator it waits for slower actors, however short the last wait was."""
    pace, clock = make()
    pace.policy_arrived(0)
    for _ in range(4):
        assert pace.may_collect
        clock.now += 2.4
        pace.collected()
    assert not pace.may_collect
    clock.now = 10.0
    pace.policy_arrived(TRAIN_STEPS)
    assert collect(pace) == 4
    clock.now = 29.9
    assert collect(pace) == 0
    clock.now = 30.0
    assert collect(pace) == 4
    clock.now = 60.0
    pace.policy_arrived(2 * TRAIN_STEPS)
    assert collect(pace) == 4
    clock.now = 79.9
    assert collect(pace) == 0, "a policy that came late changes nothing"


def test_before_the_second_policy_its_own_share_is_the_measure() -> None:
    pace, clock = make()
    pace.policy_arrived(0)
    for _ in range(4):
        clock.now += 2.5
        pace.collected()
    assert not pace.may_collect
    clock.now = 19.9
    assert not pace.may_collect
    clock.now = 20.0
    assert pace.may_collect


def test_a_learner_that_was_started_again_gets_a_share() -> None:
    pace, _ = make()
    pace.policy_arrived(10 * TRAIN_STEPS)
    collect(pace)
    pace.policy_arrived(2 * TRAIN_STEPS)
    assert collect(pace) == 4
