import itertools
import subprocess
import sys

from actorlearner.environments.seeds import seed_for


def test_every_environment_of_every_process_has_a_seed_of_its_own():
    everyone = itertools.product(range(3), ("collect-actor", "eval-actor", "learner"), range(8), range(8))
    seeds = [seed_for(*arguments) for arguments in everyone]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_seeds_are_the_same_in_every_process_and_version():
    assert seed_for(0, "collect-actor", 0) == 1627660658
    code = "from actorlearner.environments.seeds import seed_for; print(seed_for(7, 'learner', 2, 1))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(other.stdout) == seed_for(7, "learner", 2, 1)


def test_each_restart_changes_the_seed():
    seeds = [seed_for(0, "collect-actor", 0, 0, restart) for restart in range(100)]
    assert seeds[0] == 1627660658
    assert len(set(seeds)) == 100
