"""The connections of a run: ports, timeouts, a private network, and mutual TLS."""
