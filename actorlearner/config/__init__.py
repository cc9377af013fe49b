"""The configuration: its schema, how files and overrides become one, and its fingerprint."""
