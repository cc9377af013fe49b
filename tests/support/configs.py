"""Configurations that differ from the default in a few keys."""

import dataclasses
from typing import Any

from actorlearner.config.schema import Config


def config_with(**keys: Any) -> Config:
    """The default configuration with keys such as learn__batch_size replaced."""
    config = Config()
    for key, value in keys.items():
        section, _, name = key.partition("__")
        changed = dataclasses.replace(getattr(config, section), **{name: value})
        config = dataclasses.replace(config, **{section: changed})
    return config
