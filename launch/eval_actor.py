#!/usr/bin/env python3
"""Evaluate the greedy policy at train step 0, every evaluate.interval and the last one, and keep the best.

Example:
    .venv/bin/python launch/eval_actor.py --config sac_pendulum --replay_address HOST:8008
"""

import sys

from actorlearner.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["eval-actor", *sys.argv[1:]]))
