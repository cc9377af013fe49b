"""Runnable examples: start the commands in their docstrings from the root of the repository."""
