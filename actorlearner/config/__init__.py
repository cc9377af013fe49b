"""The configuration: its schema, loading it from files and overrides, and its fingerprint."""
