"""Replay: how transitions are packed, written, limited in rate and sampled.

- experience_table, rate_limit: make the table. item_size, capacity, checks: bound its size.
- layout: the interface of the two layouts, packed (with rows) and trajectories.
- n_step, sequences: make units of experience from env steps. writer: sends them to the server.
- dataset: samples batches for the learner.
- connection, identity, status, watched_servers, reverb_calls: reach a server of this run.
- checkpoints: saves and restores a server.
"""
