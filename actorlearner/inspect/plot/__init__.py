"""Pictures of what runs have learned, and how fast."""
