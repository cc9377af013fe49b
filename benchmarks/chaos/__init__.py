"""Chaos: a local run whose roles are harmed on purpose, and an account of every transition."""
