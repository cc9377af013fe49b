"""Replay: how transitions are packed, written, limited in rate and sampled.

Table: experience_table and rate_limit make it; item_size, capacity and checks bound its size.
Layouts: layout is their interface; packed (with rows) and trajectories are the two.
Actors: n_step and sequences make units of experience from env steps, and writer sends them.
Learner: dataset samples batches.
Server: connection, identity, status, watched_servers and reverb_calls; checkpoints saves and restores it.
"""
