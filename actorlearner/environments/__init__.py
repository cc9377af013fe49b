"""Environments: loading by suite and name, one light interface for all, and their tensor specs.

Interface: environment; the adapters (adapter, and one file for each library) implement it, with array_specs,
spaces and rendering; specs has the tensor specs.
Loading: load makes an environment with its wrappers and seeds; checks and quiet help.
Acting: batch steps several environments; guarded checks their answers (finite) and replaces those that fail;
process_environment runs them in processes of their own; info makes metrics of what they report.
"""
