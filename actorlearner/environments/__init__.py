"""Environments: loading by suite and name, one light interface for all, and their tensor specs."""
