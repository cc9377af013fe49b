"""Replay: how transitions are packed, written, limited in rate and sampled."""
