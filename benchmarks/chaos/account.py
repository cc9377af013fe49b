"""Accounts for every transition: produced by an environment, found in replay, or lost, and why."""

import dataclasses
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from actorlearner.agents.experience import StoredTransition
from benchmarks.chaos.numbered import Numbers, Produced, read_observations
from benchmarks.chaos.watch import ServerLoss

_UNCONFIRMED_ITEMS = 2
"""Complete items of a writer that may be unconfirmed while its actor continues; see `ReplayWriter.flush`."""


@dataclasses.dataclass(frozen=True)
class Account:
    """The outcome of the transitions that the collect actors produced.

    Attributes:
      produced: env steps taken, each of which begins one transition.
      stored: transitions found in replay.
      duplicated: surplus copies of transitions in replay.
      unknown: transitions in replay that no collect actor produced.
      torn: transitions in replay whose two observations do not belong together.
      lost_with_actor: transitions not confirmed by the replay server when their actor was killed.
      lost_at_end: transitions that the rate limiter still blocked when their actor ended by itself.
      lost_with_server: transitions inserted after the checkpoint that the next replay server restored.
      lost: all other transitions that are missing in replay.
    """

    produced: int
    stored: int
    duplicated: int
    unknown: int
    torn: int
    lost_with_actor: int
    lost_at_end: int
    lost_with_server: int
    lost: int


@dataclasses.dataclass(frozen=True)
class Writing:
    """The writing of an actor, which bounds its unconfirmed transitions.

    Attributes:
      env_steps_per_item: of the layout.
      shared: whether all environments of an actor fill the same items; else each fills its own.
      n_step: env steps in a transition.
    """

    env_steps_per_item: int
    shared: bool
    n_step: int

    def unconfirmed(self, environments: int) -> int:
        """Returns how many env steps of an actor may be unconfirmed when it takes another one.

        Each writer has one item that is being filled and two complete items in flight. Each environment has
        `n_step` env steps of unfinished transitions and one env step of the current round.
        """
        writers = 1 if self.shared else environments
        items = writers * (_UNCONFIRMED_ITEMS + 1) * self.env_steps_per_item
        return items + environments * (self.n_step + 1)


def make_account(
    produced: Sequence[Produced],
    stored: Iterable[StoredTransition],
    *,
    writing: Writing,
    killed: Collection[int],
    losses: Sequence[ServerLoss],
) -> Account:
    """Compares what was produced with what is in replay at the end.

    The time at which a transition was inserted is not recorded. It lies between the transition's env step and
    the actor's first env step that required its confirmation (about three items later, see `Writing`). A lost
    transition is attributed to a server if this interval overlaps the interval from the server's checkpoint
    to its death. Two kinds of unexplained losses therefore go unnoticed: a loss in the last three items
    before such a checkpoint, and a loss in the last three items of an actor if no later transition of the
    same environment was stored. If an actor and a server died together and either may be the reason, the loss
    is attributed to the actor.

    Args:
      produced: by the environments of the collect actors.
      stored: all transitions in replay.
      writing: how the actors wrote.
      killed: the pids of the actors that were killed.
      losses: the deaths of replay servers.
    """
    found, torn = _read(stored, writing.n_step)
    taken = {each.identity: len(each.times) for each in produced}
    distinct = set(found)
    account = dict.fromkeys(("lost_with_actor", "lost_at_end", "lost_with_server", "lost"), 0)
    for pid in {each.pid for each in produced}:
        environments = [each for each in produced if each.pid == pid]
        for why, count in _losses(environments, distinct, writing, killed, losses):
            account[why] += count
    return Account(
        produced=sum(len(each.times) for each in produced),
        stored=len(found),
        duplicated=len(found) - len(distinct),
        unknown=sum(number >= taken.get(identity, 0) for identity, number in found),
        torn=torn,
        **account,
    )


def _read(stored: Iterable[StoredTransition], n_step: int) -> tuple[list[tuple[int, int]], int]:
    """Returns the (identity, number) of each transition, and how many were torn."""
    found: list[tuple[int, int]] = []
    torn = 0
    for transitions in stored:
        here, there = (
            read_observations(observations)
            for observations in (transitions.observation, transitions.next_observation)
        )
        found += zip(here.identity.tolist(), here.number.tolist(), strict=True)
        torn += int(np.count_nonzero(~_belong_together(here, there, n_step)))
    return found, torn


def _belong_together(here: Numbers, there: Numbers, n_step: int) -> npt.NDArray[np.bool_]:
    later = there.number - here.number
    same = (here.identity == there.identity) & (here.episode == there.episode)
    result: npt.NDArray[np.bool_] = same & (later >= 1) & (later <= n_step)
    return result


def _losses(
    environments: Sequence[Produced],
    stored: set[tuple[int, int]],
    writing: Writing,
    killed: Collection[int],
    losses: Sequence[ServerLoss],
) -> Iterable[tuple[str, int]]:
    """Counts the lost transitions of one process by the reason."""
    times = np.sort(np.concatenate([each.times for each in environments]))
    margin = writing.unconfirmed(len(environments))
    at_end = "lost_with_actor" if environments[0].pid in killed else "lost_at_end"
    for each in environments:
        numbers = range(len(each.times))
        is_lost = np.array([(each.identity, number) not in stored for number in numbers], np.bool_)
        # The process could take `margin` env steps more before an env step was confirmed.
        place = np.searchsorted(times, each.times)
        confirmed = np.append(times, [np.inf] * margin)[place + margin]
        unconfirmed = _trailing(is_lost) & np.isinf(confirmed)
        by_server = np.zeros_like(is_lost)
        for loss in losses:
            by_server |= (confirmed > loss.saved_at) & (each.times <= loss.died_at)
        yield at_end, int(np.count_nonzero(unconfirmed))
        yield "lost_with_server", int(np.count_nonzero(is_lost & ~unconfirmed & by_server))
        yield "lost", int(np.count_nonzero(is_lost & ~unconfirmed & ~by_server))


def _trailing(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Returns the trailing run of set flags as a mask."""
    result: npt.NDArray[np.bool_] = np.logical_and.accumulate(flags[::-1])[::-1]
    return result
