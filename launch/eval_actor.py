#!/usr/bin/env python3
"""Measure the greedy policy now and then, and keep the best one.

Example:
    .venv/bin/python launch/eval_actor.py --config sac_pendulum --replay_address HOST:8008
"""

import sys

from actorlearner.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["eval-actor", *sys.argv[1:]]))
