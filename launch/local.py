#!/usr/bin/env python3
"""Train on this machine: every role as a process of its own.

Example:
    .venv/bin/python launch/local.py --config sac_pendulum --set learn.train_steps=20000
"""

import sys

from actorlearner.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["local", *sys.argv[1:]]))
