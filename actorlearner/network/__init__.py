"""What the connections of a run need: ports, timeouts, a private network, and mutual TLS."""
