"""What a replay server tells of a run to whoever can reach it."""

import dataclasses
import json
import time
from collections.abc import Callable
from typing import Any

import reverb
import tree

from actorlearner.errors import ConfigurationError, RunError
from actorlearner.replay.blocked import BlockedTime
from actorlearner.replay.packed import PackedLayout
from actorlearner.replay.reverb_calls import UNREACHABLE, within
from actorlearner.replay.run_identity import configuration_of, run_id_of
from actorlearner.replay.status import ReplayStatus, status_of
from actorlearner.replay.trajectories import TrajectoryLayout
from actorlearner.variables.container import (
    EVALUATION_TABLE,
    VARIABLES_TABLE,
    PolicyVariables,
    VariableContainer,
)

ANSWER_S = 5
"""Seconds within which the server has to answer."""


@dataclasses.dataclass(frozen=True)
class ServerStatus:
    """A run as one replay server tells it. What needs two looks is None at the first one.

    Attributes:
      replay_address, run_id: which server, and its run.
      time: of the look, in Unix seconds.
      train_step: of the newest policy published; None before the first.
      train_steps: of the whole run.
      generation: which of the run's learners published it, counted from 0.
      versions: how many policies were published since the server was started.
      variables_age_s: seconds since a new version was first seen; it may be older where `variables_new` is
        false.
      variables_new: whether a new version came since this began to look.
      evaluations_waiting: policies that wait for their evaluation.
      replay: `size`, `capacity`, `inserts`, `samples` (transitions), `samples_per_insert`,
        `samples_per_insert_wanted`, `inserts_barred_fraction` and `sampling_barred_fraction` since the last
        look.
      train_steps_per_s, env_steps_per_s: since the last look, by what was sampled and inserted here.
      time_left_s: seconds to the last train step at that rate.
      held_back_by: "learner" or "actors", whose side the rate limiter waits for; None if for neither.
    """

    replay_address: str
    run_id: str
    time: float
    train_step: int | None
    train_steps: int
    generation: int | None
    versions: int
    variables_age_s: float
    variables_new: bool
    evaluations_waiting: int
    replay: dict[str, Any]
    train_steps_per_s: float | None
    env_steps_per_s: float | None
    time_left_s: float | None
    held_back_by: str | None


_HELD_BACK = 0.1
"""The fraction of the time from which on the rate limiter is said to wait for a side."""


class ServerLooker:
    """Looks at a replay server, again and again."""

    def __init__(self, address: str) -> None:
        """Asks which run it serves.

        Args:
          address: HOST:PORT.

        Raises:
          ConfigurationError: it is not the replay server of a run.
          RunError: it does not answer within ANSWER_S.
        """
        self._address = address
        self._client = reverb.Client(address)
        run_id = run_id_of(self._tables())
        if run_id is None:
            raise ConfigurationError(
                [f"--replay_address: {address} is a Reverb server, but not a replay server of a run"]
            )
        self._run_id = run_id
        self._config: dict[str, Any] = json.loads(
            self._answer(lambda: within(ANSWER_S, lambda: configuration_of(self._client, run_id)))
        )
        layouts: dict[str, Any] = {"packed": PackedLayout, "trajectory": TrajectoryLayout}
        self._table: str = layouts[self._config["replay"]["layout"]].table
        self._barred = BlockedTime()
        self._last: tuple[float, ReplayStatus] | None = None
        self._versions: int | None = None
        self._variables: PolicyVariables | None = None
        self._changed = time.monotonic()
        self._new = False

    def look(self) -> ServerStatus:
        """Takes a look; blocks for up to 2 ANSWER_S.

        Raises:
          RunError: the server does not answer within ANSWER_S, or another run's has taken its place.
        """
        tables = self._tables()
        if run_id_of(tables) != self._run_id:
            raise RunError(f"{self._address} serves another run by now; it was run {self._run_id}")
        now = time.monotonic()
        self._look_at_variables(tables[VARIABLES_TABLE], now)
        status = status_of(tables[self._table], self._transitions(tables))
        barred = self._barred.update(status)
        train_rate, env_rate = self._rates(status, now)
        replay, learn = self._config["replay"], self._config["learn"]
        updates = replay["updates_per_env_step"]
        newest = self._variables
        left = None if newest is None else learn["train_steps"] - newest.train_step
        return ServerStatus(
            replay_address=self._address,
            run_id=self._run_id,
            time=time.time(),
            train_step=None if newest is None else newest.train_step,
            train_steps=learn["train_steps"],
            generation=None if newest is None else newest.generation,
            versions=self._versions or 0,
            variables_age_s=now - self._changed,
            variables_new=self._new,
            evaluations_waiting=int(tables[EVALUATION_TABLE].current_size),
            replay={
                "size": status.size,
                "capacity": replay["capacity"],
                "inserts": status.inserts,
                "samples": status.samples,
                "samples_per_insert": status.samples_per_insert,
                "samples_per_insert_wanted": None if updates is None else updates * learn["batch_size"],
                "inserts_barred_fraction": None if barred is None else barred.inserts,
                "sampling_barred_fraction": None if barred is None else barred.sampling,
            },
            train_steps_per_s=train_rate,
            env_steps_per_s=env_rate,
            time_left_s=left / train_rate if left is not None and train_rate else None,
            held_back_by=None if barred is None else _held_back_by(barred.inserts, barred.sampling),
        )

    def _tables(self) -> dict[str, Any]:
        # With a deadline of its own: a thread that waits in Reverb aborts the process when that ends.
        tables: dict[str, Any] = self._answer(lambda: self._client.server_info(timeout=ANSWER_S))
        return tables

    def _answer(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except UNREACHABLE:
            raise RunError(f"{self._address} does not answer within {ANSWER_S} s") from None

    def _transitions(self, tables: dict[str, Any]) -> int:
        """Transitions of an item."""
        if self._table == TrajectoryLayout.table:
            return 1
        (rows,) = tree.flatten(tables[self._table].signature)
        return int(rows.shape[1])

    def _look_at_variables(self, table: Any, now: float) -> None:
        versions = int(table.rate_limiter_info.insert_stats.completed) if table.current_size else 0
        if versions == self._versions:
            return
        if self._versions is not None:
            self._changed, self._new = now, True
        self._versions = versions
        container = VariableContainer(self._client)
        self._variables = self._answer(lambda: within(ANSWER_S, container.pull)) if versions else None

    def _rates(self, status: ReplayStatus, now: float) -> tuple[float | None, float | None]:
        last, self._last = self._last, (now, status)
        if last is None or status.inserts < last[1].inserts or status.samples < last[1].samples:
            return None, None
        elapsed_s = max(now - last[0], 1e-9)
        sampled = (status.samples - last[1].samples) / self._config["learn"]["batch_size"]
        return sampled / elapsed_s, (status.inserts - last[1].inserts) / elapsed_s


def _held_back_by(inserts_barred: float, sampling_barred: float) -> str | None:
    if max(inserts_barred, sampling_barred) < _HELD_BACK:
        return None
    return "learner" if inserts_barred > sampling_barred else "actors"
