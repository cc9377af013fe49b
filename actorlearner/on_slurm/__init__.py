"""A run as two Slurm jobs: one with replay server, learner and eval actor, and an array of collect actors."""
