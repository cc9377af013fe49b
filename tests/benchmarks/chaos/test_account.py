"""Accounts of hand-made stores: each kind of loss is recognised, and planted faults are found."""

import dataclasses

import numpy as np
import pytest

from actorlearner.agents.experience import StoredTransition
from benchmarks.chaos.account import Account, Writing, make_account
from benchmarks.chaos.numbered import Produced, observation
from benchmarks.chaos.watch import ServerLoss

ITEM = 4
PACKED = Writing(ITEM, shared=True, n_step=1)
TRAJECTORIES = Writing(1, shared=False, n_step=1)
STEPS = 100
NOTHING = Account(0, 0, 0, 0, 0, 0, 0, 0, 0)


def environment(ordinal: int, pid: int = 7, steps: int = STEPS) -> Produced:
    """Takes an env step a second, from 1,000 s on; the environments of a process take turns."""
    times = 1_000.0 + np.arange(steps) + 0.1 * ordinal
    return Produced(pid, identity=2**40 + 1_000 * pid + ordinal, times=times)


ENVIRONMENTS = (environment(0), environment(1))
PRODUCED = 2 * STEPS


def stored(pairs: list[tuple[int, int]]) -> StoredTransition:
    def observations(step: int) -> np.ndarray:
        return np.array([observation(identity, number + step, 3) for identity, number in pairs])

    nothing = np.zeros(len(pairs), np.float32)
    return StoredTransition(observations(0), nothing, nothing, nothing, observations(1), nothing)


def everything(*environments: Produced) -> list[tuple[int, int]]:
    return [(each.identity, number) for each in environments for number in range(len(each.times))]


def account(
    pairs: list[tuple[int, int]],
    *losses: ServerLoss,
    killed: tuple[int, ...] = (),
    writing: Writing = PACKED,
    environments: tuple[Produced, ...] = ENVIRONMENTS,
) -> Account:
    half = len(pairs) // 2
    parts = [stored(pairs[:half]), stored(pairs[half:])] if pairs else []
    return make_account(environments, parts, writing=writing, killed=killed, losses=losses)


def without(*lost: tuple[int, int]) -> list[tuple[int, int]]:
    """Everything but the env steps (ordinal, number)."""
    gone = {(ENVIRONMENTS[ordinal].identity, number) for ordinal, number in lost}
    return [pair for pair in everything(*ENVIRONMENTS) if pair not in gone]


def test_no_loss_is_counted_if_everything_is_stored() -> None:
    expected = dataclasses.replace(NOTHING, produced=PRODUCED, stored=PRODUCED)
    assert account(everything(*ENVIRONMENTS)) == expected


def test_a_planted_duplicate_is_found() -> None:
    pairs = everything(*ENVIRONMENTS)
    assert account([*pairs, pairs[5], pairs[5], pairs[9]]).duplicated == 3


def test_a_planted_loss_is_found() -> None:
    found = account(without((0, 50), (1, 3)), killed=(7,))
    assert (found.lost, found.lost_with_actor, found.lost_with_server) == (2, 0, 0)
    assert found.stored == PRODUCED - 2


@pytest.mark.parametrize("writing", [PACKED, TRAJECTORIES])
@pytest.mark.parametrize("killed", [True, False])
def test_unconfirmed_transitions_are_attributed_to_the_end_of_the_actor(
    writing: Writing, killed: bool
) -> None:
    margin = writing.unconfirmed(2) // 2  # Of each environment.
    last = [(ordinal, STEPS - 1 - k) for ordinal in (0, 1) for k in range(margin)]
    found = account(without(*last), killed=(7,) if killed else (), writing=writing)
    assert (found.lost_with_actor, found.lost_at_end) == ((2 * margin, 0) if killed else (0, 2 * margin))
    assert found.lost == 0
    # A loss one env step earlier is unexplained.
    assert account(without(*last, (0, STEPS - 1 - margin)), killed=(7,), writing=writing).lost == 1


def test_a_loss_before_a_stored_transition_is_not_attributed_to_the_killed_actor() -> None:
    assert account(without((0, STEPS - 2)), killed=(7,)).lost == 1
    assert account(without((0, STEPS - 2), (0, STEPS - 1)), killed=(7,)).lost_with_actor == 2


def test_only_the_actor_that_was_killed_is_excused() -> None:
    other = environment(0, pid=8)
    pairs = [pair for pair in everything(*ENVIRONMENTS, other) if pair[1] < STEPS - 1]
    found = account(pairs, killed=(8,), environments=(*ENVIRONMENTS, other))
    assert (found.lost_with_actor, found.lost_at_end) == (1, 2)


def test_transitions_inserted_after_the_checkpoint_are_lost_with_the_server() -> None:
    gone = [(ordinal, number) for ordinal in (0, 1) for number in range(40, 61)]
    found = account(without(*gone), ServerLoss(saved_at=1_040.0, died_at=1_061.5))
    assert (found.lost_with_server, found.lost) == (len(gone), 0)


def test_what_was_in_the_checkpoint_is_not_excused() -> None:
    margin = PACKED.unconfirmed(2) // 2
    loss = ServerLoss(saved_at=1_040.0, died_at=1_061.5)
    for number, excused in ((40 - margin - 1, False), (40 - margin + 1, True), (61, True), (63, False)):
        found = account(without((1, number)), loss)
        assert (found.lost_with_server, found.lost) == ((1, 0) if excused else (0, 1)), number


def test_a_server_without_a_checkpoint_loses_everything_before() -> None:
    pairs = [pair for pair in everything(*ENVIRONMENTS) if pair[1] > 30]
    found = account(pairs, ServerLoss(saved_at=0.0, died_at=1_030.5))
    assert (found.lost_with_server, found.lost) == (62, 0)


def test_stored_transitions_that_no_actor_produced_are_unknown() -> None:
    pairs = everything(*ENVIRONMENTS)
    found = account([*pairs, (99, 0), (ENVIRONMENTS[0].identity, STEPS)])
    assert (found.unknown, found.duplicated) == (2, 0)


def test_observations_that_do_not_belong_together_are_torn() -> None:
    pairs = everything(*ENVIRONMENTS)
    complete = stored(pairs)
    assert complete.next_observation.shape == (PRODUCED, 4)
    for torn in (
        observation(ENVIRONMENTS[1].identity, 6, 3),  # Of another environment.
        observation(ENVIRONMENTS[0].identity, 6, 4),  # Of the next episode.
        observation(ENVIRONMENTS[0].identity, 7, 3),  # Of a later env step.
        observation(ENVIRONMENTS[0].identity, 5, 3),  # Of the same one.
    ):
        following = complete.next_observation.copy()
        following[5] = torn
        parts = [complete._replace(next_observation=following)]
        found = make_account(ENVIRONMENTS, parts, writing=PACKED, killed=(), losses=())
        assert found.torn == 1


def test_later_env_steps_belong_to_n_step_transitions() -> None:
    pair = [(ENVIRONMENTS[0].identity, 5)]
    part = stored(pair)
    part = part._replace(next_observation=np.array([observation(pair[0][0], 8, 3)]))
    for n_step, torn in ((3, 0), (2, 1)):
        writing = dataclasses.replace(PACKED, n_step=n_step)
        found = make_account(ENVIRONMENTS, [part], writing=writing, killed=(), losses=())
        assert found.torn == torn


def test_an_empty_replay() -> None:
    found = account([], environments=(environment(0, steps=3),))
    assert (found.produced, found.stored, found.lost_at_end) == (3, 0, 3)
