"""How the process of a role begins, behaves and ends."""
