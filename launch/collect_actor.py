#!/usr/bin/env python3
"""Act in environments and write transitions into replay: as many as wanted, each with an index of its own.

Example:
    .venv/bin/python launch/collect_actor.py --config sac_pendulum --replay_address HOST:8008 --actor_index 0
"""

import sys

from actorlearner.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["collect-actor", *sys.argv[1:]]))
