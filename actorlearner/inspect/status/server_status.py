"""The status of a run, read from its replay server."""

import dataclasses
import json
import time
from collections.abc import Callable
from typing import Any

import reverb
import tree

from actorlearner.errors import ConfigurationError, RunError
from actorlearner.replay.identity import configuration_of, run_id_of
from actorlearner.replay.packed import FRAGMENTS, PACKED, SEQUENCES
from actorlearner.replay.reverb_calls import UNREACHABLE, within
from actorlearner.replay.status import BlockedFractions, BlockedTime, ReplayStatus, status_of
from actorlearner.replay.trajectories import TrajectoryLayout
from actorlearner.variables.container import (
    EVALUATION_TABLE,
    VARIABLES_TABLE,
    PolicyVariables,
    VariableContainer,
)

ANSWER_S = 5
"""Seconds after which a request to the server fails."""


@dataclasses.dataclass(frozen=True)
class ServerStatus:
    """The status of a run, as one replay server knows it. Rates and fractions are None at the first reading.

    Attributes:
      replay_address, run_id: the server and its run.
      time: the time of reading, in Unix seconds.
      train_step: the train step of the newest published policy; None before the first.
      train_steps: the total of the run.
      generation: the generation of the learner that published it.
      versions: the number of policies published since the server started.
      variables_age_s: seconds since the newest version was first seen; a lower bound unless
        `variables_new`.
      variables_new: whether a new version arrived since the first reading.
      evaluations_waiting: the number of policies waiting for evaluation.
      replay: `size`, `capacity` (None where experience is consumed once), `inserts`, `samples`
        (transitions), `samples_per_insert`, `samples_per_insert_wanted`, `inserts_barred_fraction` and
        `sampling_barred_fraction` since the last reading.
      train_steps_per_s, env_steps_per_s: since the last reading, by the samples and inserts of this server.
      time_left_s: seconds to the last train step at that rate; with several servers, too many.
      held_back_by: the slower side, "learner" or "actors"; None if neither is blocked, after the last train
        step, or if experience is consumed once: then actors also wait for policies, which the server does not
        see.
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
"""A side that is blocked for at least this fraction of the time counts as waiting."""


class ServerStatusReader:
    """Reads the status of a replay server repeatedly."""

    def __init__(self, address: str) -> None:
        """Connects, and reads which run the server serves.

        Args:
          address: HOST:PORT.

        Raises:
          ConfigurationError: the address is not the replay server of a run.
          RunError: the server does not answer within ANSWER_S.
        """
        self._address = address
        self._client = reverb.Client(address)
        tables = self._tables()
        run_id = run_id_of(tables)
        if run_id is None:
            raise ConfigurationError(
                [f"--replay_address: {address} is a Reverb server, but not a replay server of a run"]
            )
        self._run_id = run_id
        self._table = next(table for table in tables if _holds_experience(table))
        self._blocked = BlockedTime()
        self._last: tuple[float, ReplayStatus] | None = None
        self._versions: int | None = None
        self._variables: PolicyVariables | None = None
        self._changed = time.monotonic()
        self._new = False

    def read(self) -> ServerStatus:
        """Returns the status; blocks for up to 3 ANSWER_S.

        Raises:
          RunError: the server does not answer within ANSWER_S, or serves another run now.
        """
        tables = self._tables()
        if run_id_of(tables) != self._run_id:
            raise RunError(f"{self._address} now serves another run than {self._run_id}")
        now = time.monotonic()
        self._read_variables(tables[VARIABLES_TABLE], now)
        status = status_of(tables[self._table], *self._per_item(tables))
        blocked = self._blocked.update(status)
        train_rate, env_rate = self._rates(status, now)
        newest, train_steps = self._variables, self._config["learn"]["train_steps"]
        left = None if newest is None else train_steps - newest.train_step
        return ServerStatus(
            # With TLS, the client's address is a Unix socket, named after the server: unix:FOLDER/HOST:PORT.
            replay_address=self._address.rpartition("/")[2],
            run_id=self._run_id,
            time=time.time(),
            train_step=None if newest is None else newest.train_step,
            train_steps=train_steps,
            generation=None if newest is None else newest.generation,
            versions=self._versions or 0,
            variables_age_s=now - self._changed,
            variables_new=self._new,
            evaluations_waiting=int(tables[EVALUATION_TABLE].current_size),
            replay=self._replay(status, blocked),
            train_steps_per_s=train_rate,
            env_steps_per_s=env_rate,
            time_left_s=left / train_rate if left is not None and train_rate else None,
            held_back_by=None if self._consumed_once or left == 0 else _held_back_by(blocked),
        )

    def _replay(self, status: ReplayStatus, blocked: BlockedFractions | None) -> dict[str, Any]:
        replay, batch_size = self._config["replay"], self._config["learn"]["batch_size"]
        updates = replay["updates_per_env_step"]
        return {
            "size": status.size,
            "capacity": None if self._consumed_once else replay["capacity"],
            "inserts": status.inserts,
            "samples": status.samples,
            "samples_per_insert": status.samples_per_insert,
            "samples_per_insert_wanted": None if updates is None else updates * batch_size,
            "inserts_barred_fraction": None if blocked is None else blocked.inserts,
            "sampling_barred_fraction": None if blocked is None else blocked.sampling,
        }

    @property
    def _consumed_once(self) -> bool:
        return self._table.startswith(FRAGMENTS)

    def _tables(self) -> dict[str, Any]:
        # Reverb's own timeout: a thread that waits in Reverb aborts the process at its exit.
        tables: dict[str, Any] = self._answer(lambda: self._client.server_info(timeout=ANSWER_S))
        return tables

    def _answer(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except UNREACHABLE:
            raise RunError(f"{self._address} does not answer within {ANSWER_S} s") from None

    def _per_item(self, tables: dict[str, Any]) -> tuple[int, int]:
        """Returns the env steps in each item, and the units of a batch that each sample of an item yields."""
        if self._table == TrajectoryLayout.table:
            return 1, 1
        if self._table.startswith(SEQUENCES):
            return int(self._table.removeprefix(SEQUENCES)), 1
        if self._consumed_once:
            length = int(self._table.removeprefix(FRAGMENTS))
            return length, length
        (rows,) = tree.flatten(tables[self._table].signature)
        return int(rows.shape[1]), int(rows.shape[1])

    def _read_variables(self, table: Any, now: float) -> None:
        versions = int(table.rate_limiter_info.insert_stats.completed) if table.current_size else 0
        if versions == self._versions:
            return
        if self._versions is not None:
            self._changed, self._new = now, True
        # A learner that publishes after a resume may have more train steps.
        config = self._answer(lambda: within(ANSWER_S, lambda: configuration_of(self._client, self._run_id)))
        self._config: dict[str, Any] = json.loads(config)
        container = VariableContainer(self._client)
        self._variables = self._answer(lambda: within(ANSWER_S, container.pull)) if versions else None
        self._versions = versions

    def _rates(self, status: ReplayStatus, now: float) -> tuple[float | None, float | None]:
        last, self._last = self._last, (now, status)
        if last is None or status.inserts < last[1].inserts or status.samples < last[1].samples:
            return None, None
        elapsed_s = max(now - last[0], 1e-9)
        sampled = (status.samples - last[1].samples) / self._config["learn"]["batch_size"]
        env_rate = (status.inserts - last[1].inserts) / elapsed_s
        # Iterations train on a fragment several times; only the algorithm knows how often.
        return None if self._consumed_once else sampled / elapsed_s, env_rate


def _holds_experience(table: str) -> bool:
    return table in (PACKED, TrajectoryLayout.table) or table.startswith((SEQUENCES, FRAGMENTS))


def _held_back_by(blocked: BlockedFractions | None) -> str | None:
    if blocked is None or max(blocked) < _HELD_BACK:
        return None
    return "learner" if blocked.inserts > blocked.sampling else "actors"
