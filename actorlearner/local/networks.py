"""Which network the roles of a local run are in, and what there is to say of it."""

from actorlearner.local.private_network import PrivateNetwork, RefusedError

PRIVATE, HOST = "private", "host"
NETWORKS = (PRIVATE, HOST)

_OPEN = "the replay server's port is open to all that reach this machine: Reverb asks for no password"


def choose_network(name: str) -> tuple[PrivateNetwork | None, str]:
    """Makes the network that is asked for, where that is possible.

    Args:
      name: one of NETWORKS.

    Returns:
      The private network, or None for the machine's own; and a line for people.
    """
    if name == HOST:
        return None, f"network: {_OPEN}"
    try:
        return PrivateNetwork(), "network: private; nothing outside this run reaches the replay server"
    except RefusedError as error:
        return None, f"network: {_OPEN}; a private network is refused: {error}"
