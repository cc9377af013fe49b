"""Trains with SBX, which is Stable-Baselines3 in JAX: python -m benchmarks.others.runners.sbx_runner JOB."""

import sys

import sbx

from benchmarks.others.job import from_json
from benchmarks.others.runners.sb3_runner import train

if __name__ == "__main__":
    train(from_json(sys.argv[1]), sbx.SAC)
