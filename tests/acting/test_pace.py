"""How much an actor collects with each policy."""

import itertools
from collections.abc import Sequence

import pytest

from actorlearner.acting.pace import Pace
from actorlearner.agents.experience import Iteration

ENV_STEPS, ACTORS, FRAGMENT, TRAIN_STEPS = 800, 2, 100, 40
COLLECT_S = 2.0


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def make(lag: int = 0) -> tuple[Pace, Clock]:
    clock = Clock()
    return Pace(Iteration(ENV_STEPS, 10, lag), FRAGMENT, ACTORS, TRAIN_STEPS, clock), clock


@pytest.mark.parametrize(("actors", "surplus"), [(1, 0), (2, 0), (3, 100), (8, 0), (9, 100)])
def test_a_surplus_is_what_all_actors_collect_beyond_an_iteration(actors: int, surplus: int) -> None:
    assert Pace(Iteration(ENV_STEPS, 10, 0), FRAGMENT, actors, TRAIN_STEPS).surplus == surplus


def collect(pace: Pace) -> int:
    count = 0
    while pace.may_collect():
        pace.collected()
        count += 1
    return count


def collect_at(now: float, pace: Pace, clock: Clock) -> int:
    clock.now = now
    return collect(pace)


def collected(actors: int, train_s: Sequence[float]) -> list[list[int]]:
    """Runs actors that collect their shares within COLLECT_S, and a learner that trains for so long.

    Returns:
      For each call of the training graph, the fragments of each actor until the next policy.
    """
    clock = Clock()
    share = ENV_STEPS // actors // FRAGMENT
    paces = [Pace(Iteration(ENV_STEPS, 10, 0), FRAGMENT, actors, TRAIN_STEPS, clock) for _ in range(actors)]
    found: list[list[int]] = []
    for iteration, seconds in enumerate(train_s):
        counts = [0] * actors
        for pace in paces:
            pace.policy_arrived(iteration * TRAIN_STEPS)
        trained = clock.now + COLLECT_S + seconds
        while clock.now < trained:
            for index, pace in enumerate(paces):
                if pace.may_collect():
                    pace.collected()
                    counts[index] += 1
            clock.now += COLLECT_S / share
        found.append(counts)
    return found


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
    assert collect_at(29.9, pace, clock) == 0
    assert collect_at(30.0, pace, clock) == 4
    assert collect_at(59.9, pace, clock) == 0, "what comes after it is waited for"
    assert collect_at(60.0, pace, clock) == 4


def test_each_actor_takes_over_a_part_of_the_missing_share() -> None:
    clock = Clock()
    pace = Pace(Iteration(900, 10, 0), 100, 3, TRAIN_STEPS, clock)
    pace.policy_arrived(0)
    assert collect(pace) == 3
    assert collect_at(30.0, pace, clock) == 2


@pytest.mark.parametrize("actors", [1, 2])
@pytest.mark.parametrize(
    "train_s",
    [(10.0, 10.0, 10.0, 10.0), (8.0, 0.5, 0.5, 0.5)],
    ids=["slower than collecting", "a slow first call"],
)
def test_there_is_no_takeover_while_the_learner_trains(train_s: Sequence[float], actors: int) -> None:
    assert collected(actors, train_s) == [[ENV_STEPS // actors // FRAGMENT] * actors] * len(train_s)


@pytest.mark.parametrize("slow_s", [11.0, 14.0, 18.0, 25.0, 40.0])
@pytest.mark.parametrize("actors", [2, 8])
def test_takeovers_end_although_training_stays_slower_than_before(actors: int, slow_s: float) -> None:
    """They would take env steps that the learner drops, in every iteration."""
    share = ENV_STEPS // actors // FRAGMENT
    assert collected(actors, [3.0] * 3 + [slow_s] * 12)[-4:] == [[share] * actors] * 4


def test_its_patience_follows_the_time_between_policies() -> None:
    """In a slow simulator it waits for slower actors, however short the last wait was."""
    pace, clock = make()
    for iteration in range(3):
        clock.now = 10.0 * iteration
        pace.policy_arrived(iteration * TRAIN_STEPS)
        assert collect(pace) == 4
    assert collect_at(39.9, pace, clock) == 0
    assert collect_at(40.0, pace, clock) == 4
    clock.now = 43.0
    pace.policy_arrived(3 * TRAIN_STEPS)
    assert collect(pace) == 4
    assert collect_at(57.9, pace, clock) == 0
    assert collect_at(58.0, pace, clock) == 4, "after a takeover it is shorter"


def test_a_missing_actor_costs_less_time_with_each_policy() -> None:
    """One of two actors never starts. Collecting its share takes a second, and training takes two."""
    pace, clock = make()
    took_s = []
    for iteration in range(36):
        pace.policy_arrived(iteration * TRAIN_STEPS)
        arrived = clock.now
        assert collect(pace) == 4
        while not pace.may_collect():
            clock.now += 0.1
        assert collect(pace) == 4
        clock.now += 3.0
        took_s.append(clock.now - arrived)
    assert took_s[:2] == pytest.approx([33.0, 33.0], abs=0.2)
    assert took_s[2] == pytest.approx(2 * 33.0 + 3.0, abs=0.5)
    assert all(later < earlier for earlier, later in itertools.pairwise(took_s[2:8]))
    assert took_s[25:32] == pytest.approx([2 * 3.0 + 3.0] * 7, abs=0.5)
    assert took_s[32] == pytest.approx(2 * 9.0 + 3.0, abs=0.5), "it checks whether an actor is missing at all"


def test_its_patience_has_a_minimum() -> None:
    pace, clock = make()
    for iteration in range(3):
        clock.now = 0.1 * iteration
        pace.policy_arrived(iteration * TRAIN_STEPS)
        assert collect(pace) == 4
    assert collect_at(1.1, pace, clock) == 0
    assert collect_at(1.3, pace, clock) == 4


def test_before_the_second_policy_its_patience_follows_its_own_share() -> None:
    """In a simulator so slow that 30 s are too short."""
    pace, clock = make()
    pace.policy_arrived(0)
    for _ in range(4):
        clock.now += 10.0
        pace.collected()
    assert not pace.may_collect()
    clock.now = 79.9
    assert not pace.may_collect()
    clock.now = 80.0
    assert pace.may_collect()


def test_a_first_interval_with_a_takeover_is_measured() -> None:
    """Otherwise the actor would take over for ever."""
    pace, clock = make()
    for iteration in range(2):
        pace.policy_arrived(iteration * TRAIN_STEPS)
        assert collect(pace) == 4
        clock.now += 30.0
        assert collect(pace) == 4
        clock.now += 20.0
    pace.policy_arrived(2 * TRAIN_STEPS)
    assert collect(pace) == 4
    clock.now += 99.9
    assert collect(pace) == 0
    clock.now += 0.2
    assert collect(pace) == 4


@pytest.mark.parametrize("late_s", [0.5, 4.0, 9.0])
def test_an_actor_that_joins_in_the_middle_of_an_interval_begins_no_takeover(late_s: float) -> None:
    pace, clock = make()
    pace.policy_arrived(0)
    clock.now = late_s
    for iteration in range(1, 5):
        pace.policy_arrived(iteration * TRAIN_STEPS)
        assert collect(pace) == 4
        clock.now += 11.9
        assert collect(pace) == 0
        clock.now += 0.1


def test_a_policy_of_a_restarted_learner_gets_a_share() -> None:
    pace, _ = make()
    pace.policy_arrived(10 * TRAIN_STEPS)
    collect(pace)
    pace.policy_arrived(2 * TRAIN_STEPS)
    assert collect(pace) == 4
