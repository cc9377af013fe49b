"""Seeds of a run's random number generators."""

import zlib

import numpy as np


def seed_for(seed: int, role: str, index: int, environment: int = 0, restart: int = 0) -> int:
    """Derives a seed from the run's seed and a use.

    The seeds of different arguments are independent. The same arguments give the same seed in every process
    and Python version, unlike `hash`.

    Args:
      seed: the run's seed, at least 0.
      role: the role's name, such as "collect-actor".
      index: of the role's process, from 0.
      environment: index among the process's environments, from 0.
      restart: 0 at the role's first start in this run; later, the steps that it had recorded or restored.

    Returns:
      A seed in [0, 2**31), which every library accepts.
    """
    entropy = [seed, zlib.crc32(role.encode()), index, environment]
    if restart:  # The seeds of first starts must not change between versions of this code.
        entropy.append(restart)
    return int(np.random.SeedSequence(entropy).generate_state(1)[0] >> 1)
