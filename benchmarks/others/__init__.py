"""Other libraries beside ours on the same machine: speed, learning, memory, and slow simulators."""
