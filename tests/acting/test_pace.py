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


def test_it_takes_over_from_an_actor_that_died() -> None:
    pace, clock = make()
    pace.policy_arrived(0)
    assert collect(pace) == 4
    clock.now = 0.9
    assert collect(pace) == 0
    clock.now = 1.0
    assert collect(pace) == 1
    clock.now = 1.5
    assert collect(pace) == 0, "each further fragment is waited for"


def test_its_patience_follows_the_time_that_training_takes() -> None:
    pace, clock = make()
    pace.policy_arrived(0)
    collect(pace)
    clock.now = 0.9
    pace.policy_arrived(TRAIN_STEPS)
    collect(pace)
    clock.now = 0.9 + 1.7
    assert collect(pace) == 0
    clock.now = 0.9 + 1.8
    assert collect(pace) == 1


def test_a_learner_that_was_started_again_gets_a_share() -> None:
    pace, _ = make()
    pace.policy_arrived(10 * TRAIN_STEPS)
    collect(pace)
    pace.policy_arrived(2 * TRAIN_STEPS)
    assert collect(pace) == 4
