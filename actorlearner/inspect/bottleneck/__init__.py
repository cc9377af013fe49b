"""The bottleneck of a run, from the shares of time of its roles, with advice."""
