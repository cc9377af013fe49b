"""Writes env steps in the trajectory layout."""

import time

import numpy as np
import reverb
import tree
from tf_agents.replay_buffers import reverb_utils
from tf_agents.trajectories import trajectory

from actorlearner.environments.environment import EnvSteps, Nest
from actorlearner.replay.writer import PENDING_ITEMS, ReplayWriter, flushed

_FIRST, _MID, _LAST = (np.asarray(step_type, np.int32) for step_type in (0, 1, 2))


class _Unended(trajectory.Trajectory):
    """The last time step of an episode, which the observer takes for one in the middle.

    At an end the observer would wait, without a deadline, until the server has confirmed every item.
    """

    def is_boundary(self) -> bool:
        return False


class TrajectoryWriter(ReplayWriter):
    """Writes every window of n + 1 time steps, with one observer for each environment.

    The last time step of an episode is written n times: then a window begins at every env step, also at the
    last ones, which n-step windows inside the episode would leave out.
    """

    def __init__(self, client: reverb.Client, table: str, n_step: int, environments: int) -> None:
        """Opens the writers; they connect at their first item."""
        super().__init__(
            [
                reverb_utils.ReverbAddTrajectoryObserver(client, table, sequence_length=n_step + 1)
                for _ in range(environments)
            ]
        )
        self._n_step = n_step
        self._newest: list[trajectory.Trajectory | None] = [None] * environments
        """For each environment, the last time step if its episode ended now; None before an episode."""
        self._ended: set[int] = set()
        """Environments whose observers have not been reset since the end of the episode."""

    def write(self, steps: EnvSteps) -> None:
        """Adds env steps; blocks if no `flush` has returned True since an episode ended."""
        for i, observer in enumerate(self._observers):
            self._finish_episode(i)
            if not steps.valid[i]:
                self._end_episode(i)
                continue
            action = _row(steps.action, i)
            last = bool(steps.last[i])
            observer(
                trajectory.Trajectory(
                    step_type=_FIRST if steps.first[i] else _MID,
                    observation=_row(steps.observation, i),
                    action=action,
                    policy_info=(),
                    next_step_type=_LAST if last else _MID,
                    reward=np.asarray(steps.reward[i], np.float32),
                    discount=np.asarray(steps.discount[i], np.float32),
                )
            )
            self._newest[i] = _end(_row(steps.next_observation, i), action)
            if last:
                self._end_episode(i)

    def _write_rest(self) -> None:
        for i in range(len(self._observers)):
            self._end_episode(i)

    def flush(self, timeout_s: float, pending_items: int = PENDING_ITEMS) -> bool:
        """Waits for the server, first for all items of the episodes that have ended."""
        deadline = time.monotonic() + timeout_s
        for i in sorted(self._ended):
            if not flushed(self._writers[i], 0, deadline):
                return False
            self._finish_episode(i)
        return super().flush(max(0.0, deadline - time.monotonic()), pending_items)

    def _end_episode(self, i: int) -> None:
        end, self._newest[i] = self._newest[i], None
        if end is None:
            return
        for _ in range(self._n_step):
            self._observers[i](_Unended(*end))
        self._ended.add(i)

    def _finish_episode(self, i: int) -> None:
        """Resets the observer after an episode; blocks until the server has confirmed all items."""
        if i in self._ended:
            self._observers[i].reset(write_cached_steps=False)
            self._ended.remove(i)


def _row(nest: Nest, i: int) -> Nest:
    # A copy: Reverb's writer may still read it after the caller has reused the array.
    return tree.map_structure(lambda leaf: np.array(leaf[i]), nest)


def _end(observation: Nest, action: Nest) -> trajectory.Trajectory:
    return trajectory.Trajectory(
        step_type=_LAST,
        observation=observation,
        action=tree.map_structure(np.zeros_like, action),
        policy_info=(),
        next_step_type=_FIRST,
        reward=np.zeros([], np.float32),
        discount=np.ones([], np.float32),
    )
