"""The machine that a role runs on, and what it leaves to choose."""
