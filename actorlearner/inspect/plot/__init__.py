"""Pictures of what runs have learned, and how fast."""

PICTURES = (".png", ".svg")
"""The suffixes of files that pictures are written to."""
