"""The curves of finished runs in docs/evidence, and the tables and pictures that the docs show of them."""
