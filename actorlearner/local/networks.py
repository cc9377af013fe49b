"""Chooses the network for the roles of a local run."""

from actorlearner.local.private_network import PrivateNetwork, RefusedError

PRIVATE, HOST = "private", "host"
NETWORKS = (PRIVATE, HOST)

_OPEN = (
    "the replay server's port is open to everybody who can reach this machine: Reverb has no authentication"
)


def choose_network(name: str) -> tuple[PrivateNetwork | None, str]:
    """Makes the requested network, where the system allows it.

    Args:
      name: one of NETWORKS.

    Returns:
      The private network, or None for the machine's own; and a line about it for the user.
    """
    if name == HOST:
        return None, f"network: {_OPEN}"
    try:
        return PrivateNetwork(), "network: private; nothing outside this run reaches the replay server"
    except RefusedError as error:
        return None, f"network: {_OPEN}; a private network is refused: {error}"
