"""Schedules of harm: enough of it, spread out, and decided by the seed alone."""

import collections
import itertools

import pytest

from benchmarks.chaos.schedule import MIN_DURATION_S, Harm, Kind, make_schedule

ROLES = [["replay-server"], ["learner"], ["collect-actor-0", "collect-actor-1"], ["eval-actor"]]


def of_group(harms: list[Harm], group: list[str]) -> list[Harm]:
    return [harm for harm in harms if harm.role in group]


@pytest.mark.parametrize("seed", range(20))
def test_ten_minutes_have_twenty_kills_and_everything_else(seed: int) -> None:
    harms = make_schedule(600, seed, ROLES)
    for group in ROLES:
        kinds = collections.Counter(harm.kind for harm in of_group(harms, group))
        assert kinds[Kind.KILL] >= 5
        assert kinds[Kind.STOP] >= 2
        assert kinds[Kind.CUT] == (0 if group == ["replay-server"] else 2)
    assert {harm.role for harm in harms} == {role for group in ROLES for role in group}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("duration_s", [MIN_DURATION_S, 90, 600, 3600])
def test_a_role_has_time_to_come_back(seed: int, duration_s: int) -> None:
    harms = make_schedule(duration_s, seed, ROLES)
    assert harms == sorted(harms, key=lambda harm: harm.at_s)
    for group in ROLES:
        own = of_group(harms, group)
        assert own[0].at_s >= 0
        assert own[-1].at_s + own[-1].length_s <= 0.9 * duration_s
        for before, after in itertools.pairwise(own):
            assert after.at_s - before.at_s - before.length_s >= 30


@pytest.mark.parametrize("seed", range(20))
def test_the_shortest_run_kills_each_role_once(seed: int) -> None:
    harms = make_schedule(MIN_DURATION_S, seed, ROLES)
    assert [harm.kind for harm in harms] == [Kind.KILL] * len(ROLES)
    assert all(len(of_group(harms, group)) == 1 for group in ROLES)


def test_the_seed_decides() -> None:
    assert make_schedule(600, 1, ROLES) == make_schedule(600, 1, ROLES)
    assert make_schedule(600, 1, ROLES) != make_schedule(600, 2, ROLES)


def test_a_kill_has_no_length_and_only_cuts_drop() -> None:
    harms = make_schedule(3600, 1, ROLES)
    for harm in harms:
        assert (harm.length_s == 0) == (harm.kind is Kind.KILL)
        assert harm.length_s == 0 or 2 <= harm.length_s <= 10
        assert harm.kind is Kind.CUT or not harm.drops
    assert {harm.drops for harm in harms if harm.kind is Kind.CUT} == {True, False}


def test_a_harm_is_described_in_words() -> None:
    assert str(Harm(1.0, "learner", Kind.KILL)) == "kill learner"
    assert str(Harm(1.0, "learner", Kind.STOP, 6.4)) == "stop learner for 6 s"
    assert str(Harm(1.0, "learner", Kind.CUT, 6.4, drops=False)) == "cut learner off for 6 s"
    description = str(Harm(1.0, "collect-actor-10", Kind.CUT, 10.0, drops=True))
    assert description == "cut collect-actor-10 off for 10 s, then drop its connections"
