"""Acting in environments to collect experience: the loop of a collect actor, and what it reports."""
