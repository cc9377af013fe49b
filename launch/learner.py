#!/usr/bin/env python3
"""Train the agent on batches from replay, and publish its policy variables.

Example:
    .venv/bin/python launch/learner.py --config sac_pendulum --replay_address HOST:8008
"""

import sys

from actorlearner.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["learner", *sys.argv[1:]]))
