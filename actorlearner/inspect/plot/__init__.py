"""`actorlearner plot`: pictures of the returns and the speed of runs."""

PICTURES = (".png", ".svg")
"""The suffixes of picture files."""
