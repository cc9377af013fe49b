"""Environments: loading by suite and name, one light interface for all, and their tensor specs.

- environment: the interface. An adapter for each library implements it (adapter, gym_adapter, ...).
- array_specs, spaces, rendering: what the adapters share. specs: the tensor specs.
- load: makes an environment with its wrappers and seed. checks: refuses names and arguments that cannot work.
- batch: steps several environments together.
- guarded: replaces an environment that fails or returns numbers that are not finite.
- process_environment: runs an environment in a process of its own.
- info: makes metrics of an environment's `info`.
"""
