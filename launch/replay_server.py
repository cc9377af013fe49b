#!/usr/bin/env python3
"""Hold the experience, and pass the policy variables on.

Example:
    .venv/bin/python launch/replay_server.py --config sac_pendulum --port 8008
"""

import sys

from actorlearner.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["replay-server", *sys.argv[1:]]))
