"""Seeds of a run's random number generators."""

import zlib

import numpy as np


def seed_for(seed: int, role: str, index: int, environment: int = 0, restart: int = 0) -> int:
    """Derives the seed of one random number generator from the run's seed.

    Different arguments give independent seeds. The same arguments give the same seed in every process and
    Python version, unlike `hash`.

    Args:
      seed: the run's seed, at least 0.
      role: the role's name, such as "collect-actor".
      index: of the role's process, from 0.
      environment: index among the process's environments, from 0.
      restart: 0 at the role's first start in this run; after a restart, a number of steps that was recorded
        or restored.

    Returns:
      A seed in [0, 2**31), which every library accepts.
    """
    entropy = [seed, zlib.crc32(role.encode()), index, environment]
    if restart:  # The seeds of first starts must not change between versions of this code.
        entropy.append(restart)
    return int(np.random.SeedSequence(entropy).generate_state(1)[0] >> 1)
