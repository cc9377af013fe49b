"""The four roles: each a module with a function `run`."""
