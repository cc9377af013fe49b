"""Trains with another library, in that library's own environment. Nothing here imports the trainer."""
