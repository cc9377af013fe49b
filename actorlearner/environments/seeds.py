"""One seed for each thing in a run that draws random numbers."""

import zlib

import numpy as np


def seed_for(seed: int, role: str, index: int, environment: int = 0, life: int = 0) -> int:
    """Derives a seed from the run's.

    Different arguments give seeds that are independent for all practical purposes; the same ones give
    the same seed in every process and Python version, which `hash` would not.

    Args:
      seed: the run's seed, at least 0.
      role: the role's name, such as "collect-actor".
      index: which of the role's processes, from 0.
      environment: which of its environments, from 0.
      life: how often the role was started in this run before, or another number that only later starts have.

    Returns:
      A seed in [0, 2**31), which every library takes.
    """
    entropy = [seed, zlib.crc32(role.encode()), index, environment]
    if life:  # Else nothing is added: first starts keep the seeds that they always had.
        entropy.append(life)
    return int(np.random.SeedSequence(entropy).generate_state(1)[0] >> 1)
