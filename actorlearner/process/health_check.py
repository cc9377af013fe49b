"""Whether roles are healthy: what their signs of life say, and whether the replay server answers."""

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path

from actorlearner.errors import one_line
from actorlearner.process.heartbeat import PATIENCE_S, Heartbeat, read_heartbeat
from actorlearner.records.run_directory import RunDirectory

REPLAY_SERVER = "replay-server"
COLLECT_ACTOR = "collect-actor"
EVAL_ACTOR = "eval-actor"
LEARNER = "learner"
ROLES = (REPLAY_SERVER, COLLECT_ACTOR, EVAL_ACTOR, LEARNER)

_NAMES = {COLLECT_ACTOR: (f"{COLLECT_ACTOR}-*",), LEARNER: (LEARNER, f"{LEARNER}-*")}
"""Of the processes of a role that may have several."""

_ANSWER_S = 5.0
_SERVER_INFO = "/deepmind.reverb.ReverbService/ServerInfo"


@dataclasses.dataclass(frozen=True)
class Health:
    """How a process of a role is.

    Attributes:
      name: of the process.
      healthy: whether it does its work, or waits as it should.
      why: what says so.
    """

    name: str
    healthy: bool
    why: str


def check(
    roles: Sequence[str],
    directory: RunDirectory,
    replay_address: str | None = None,
    now: float | None = None,
) -> list[Health]:
    """Looks at the signs of life of the processes of some roles, without importing TensorFlow.

    Args:
      roles: which; at least one process of them has to be there.
      directory: theirs.
      replay_address: where the replay server, if it is among them, has to answer; waits for up to _ANSWER_S.
      now: the time in Unix seconds; by default that of this machine.
    """
    now = time.time() if now is None else now
    found = []
    for path in _pulses(roles, directory):
        asked = replay_address if path.stem == REPLAY_SERVER else None
        found.append(_check(path, asked, now))
    return found or [Health(", ".join(roles), False, f"nothing of that runs in {directory.path}")]


def _pulses(roles: Sequence[str], directory: RunDirectory) -> list[Path]:
    names = [name for role in roles for name in _NAMES.get(role, (role,))]
    return [path for name in names for path in sorted(directory.heartbeats.glob(f"{name}.json"))]


def _check(path: Path, replay_address: str | None, now: float) -> Health:
    try:
        heartbeat = read_heartbeat(path)
    except (OSError, ValueError, TypeError) as error:
        return Health(path.stem, False, f"{path} cannot be read: {one_line(error)}")
    age_s = max(0.0, now - heartbeat.time)
    if age_s > heartbeat.patience_s:
        allowed = f"allowed: {heartbeat.patience_s:.0f} s"
        return Health(
            path.stem, False, f"no sign of life for {age_s:.0f} s ({allowed}), after: {heartbeat.doing}"
        )
    # While it writes a checkpoint, it answers nobody.
    silence = _ask(replay_address) if replay_address and _should_answer(heartbeat) else ""
    return Health(
        path.stem, heartbeat.ready and not silence, silence or f"{heartbeat.doing}, {age_s:.0f} s ago"
    )


def _should_answer(heartbeat: Heartbeat) -> bool:
    return heartbeat.ready and heartbeat.patience_s <= PATIENCE_S


def _ask(address: str) -> str:
    """Asks a replay server for its tables, as a client of Reverb does; returns what is wrong, if anything."""
    import grpc

    # A proxy that the environment names would be asked for an address on this machine, too.
    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        try:
            channel.unary_unary(_SERVER_INFO)(b"", timeout=_ANSWER_S)
        except grpc.RpcError as error:
            return f"{address} does not answer ({error.code().name.lower()})"
    return ""
