"""The files of a run, and how they are written and read."""
