"""The algorithms: one file each, behind the interface of builder.py, found by name in registry.py."""
