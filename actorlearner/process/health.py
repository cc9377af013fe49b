"""Health checks of roles: their heartbeats, and whether the replay server answers."""

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path

from actorlearner.errors import EXIT_FAILED, EXIT_FINISHED, one_line
from actorlearner.process.heartbeat import PATIENCE_S, read_heartbeat
from actorlearner.process.role_names import COLLECT_ACTOR, LEARNER, REPLAY_SERVER
from actorlearner.records.run_directory import RunDirectory

_PATTERNS = {COLLECT_ACTOR: (f"{COLLECT_ACTOR}-*",), LEARNER: (LEARNER, f"{LEARNER}-*")}
"""Process names of the roles that may have several processes."""

_ANSWER_TIMEOUT_S = 5.0
_SERVER_INFO = "/deepmind.reverb.ReverbService/ServerInfo"


@dataclasses.dataclass(frozen=True)
class Health:
    """The health of one process: a healthy one makes progress, or waits as it should."""

    name: str
    healthy: bool
    why: str


def run_health(roles: Sequence[str], run_dir: str, replay_address: str | None) -> int:
    """Prints a line about each process that `check` finds; returns exit code 1 if one is not healthy."""
    found = check(roles, RunDirectory(Path(run_dir)), replay_address)
    for health in found:
        print(f"{health.name}: {'healthy' if health.healthy else 'NOT HEALTHY'}: {health.why}")
    return EXIT_FINISHED if all(health.healthy for health in found) else EXIT_FAILED


def check(
    roles: Sequence[str],
    directory: RunDirectory,
    replay_address: str | None = None,
    now: float | None = None,
) -> list[Health]:
    """Checks the heartbeats of all processes of some roles, without importing TensorFlow.

    Args:
      roles: the names of the roles. If none of their processes runs, the result is not healthy.
      directory: the run directory.
      replay_address: HOST:PORT where the replay server must answer, if its role is checked; blocks up to 5 s.
      now: Unix seconds; the current time by default.
    """
    now = time.time() if now is None else now
    names = [name for role in roles for name in _PATTERNS.get(role, (role,))]
    paths = [path for name in names for path in sorted(directory.heartbeats.glob(f"{name}.json"))]
    found = [_check(path, replay_address if path.stem == REPLAY_SERVER else None, now) for path in paths]
    return found or [Health(", ".join(roles), False, f"no such process runs in {directory.path}")]


def _check(path: Path, replay_address: str | None, now: float) -> Health:
    try:
        heartbeat = read_heartbeat(path)
    except (OSError, ValueError, TypeError) as error:
        return Health(path.stem, False, f"{path} cannot be read: {one_line(error)}")
    age_s = max(0.0, now - heartbeat.time)
    if age_s > heartbeat.patience_s:
        late = f"no heartbeat for {age_s:.0f} s (allowed: {heartbeat.patience_s:.0f} s)"
        return Health(path.stem, False, f"{late}, after: {heartbeat.doing}")
    # The server does not answer while it writes a checkpoint, which it announces with a longer patience.
    should_answer = heartbeat.ready and heartbeat.patience_s <= PATIENCE_S
    if replay_address and should_answer and (failure := _ask(replay_address)):
        return Health(path.stem, False, failure)
    return Health(path.stem, heartbeat.ready, f"{heartbeat.doing}, {age_s:.0f} s ago")


def _ask(address: str) -> str:
    """Calls a replay server as Reverb's `server_info` does; returns the failure, or an empty text."""
    import grpc

    # Not through an HTTP proxy from the environment variables, which may apply to this machine, too.
    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        try:
            channel.unary_unary(_SERVER_INFO)(b"", timeout=_ANSWER_TIMEOUT_S)
        except grpc.RpcError as error:
            return f"{address} does not answer ({error.code().name.lower()})"
    return ""
