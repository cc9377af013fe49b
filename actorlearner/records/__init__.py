"""The files of a run: run directory, metrics, events, summaries and sealed files."""
