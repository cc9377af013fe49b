"""The checks, in the order in which they are made."""

import dataclasses
from collections.abc import Callable

from actorlearner.inspect.doctor.disk import check_disk
from actorlearner.inspect.doctor.environment import check_agent, check_environment
from actorlearner.inspect.doctor.libraries import check_gpus, check_libraries
from actorlearner.inspect.doctor.memory import check_memory
from actorlearner.inspect.doctor.network import check_network
from actorlearner.inspect.doctor.platform import check_platform
from actorlearner.inspect.doctor.result import Result
from actorlearner.inspect.doctor.round_trip import check_round_trip
from actorlearner.inspect.doctor.subject import Subject
from actorlearner.inspect.doctor.versions import check_versions


@dataclasses.dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
      name: what is checked.
      make: makes it; what it raises is a failure as well.
      repair: what to do where it raises something, hangs or crashes.
      deadline_s: seconds after which it hangs.
      needs: the names of checks without which this one tells nothing.
    """

    name: str
    make: Callable[[Subject], Result]
    repair: str
    deadline_s: float = 120.0
    needs: tuple[str, ...] = ()


CHECKS = (
    Check("platform", check_platform, "use Linux on x86-64"),
    Check("versions", check_versions, "make setup"),
    Check("libraries", check_libraries, "make setup, for packages that fit each other"),
    Check("gpus", check_gpus, "see what nvidia-smi says", needs=("libraries",)),
    Check("network", check_network, "set the loopback interface up"),
    Check("environment", check_environment, "make and step it by itself", needs=("libraries",)),
    Check("agent", check_agent, "choose another agent.name", needs=("environment",)),
    Check("memory", check_memory, "lower replay.capacity", needs=("environment",)),
    Check("disk", check_disk, "choose another --run_dir", needs=("agent",)),
    Check(
        "replay",
        check_round_trip,
        "unset http_proxy, and see what filters connections of this machine to itself",
        needs=("environment", "network"),
    ),
)
