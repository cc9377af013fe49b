"""Modules that the measurements share: rounds, reports, replay servers, env steps, TF-Agents' own roles."""
