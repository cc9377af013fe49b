"""actorlearner: an actor-learner distributed trainer for reinforcement learning over Reverb.

The names below are loaded when they are first used: importing this package imports neither TensorFlow nor
Reverb, so that a command line is checked and refused in a fraction of a second.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from actorlearner.acting.saved_policy import Policy, evaluate, load_policy
    from actorlearner.api import Run, load_config, resume, train
    from actorlearner.callbacks import Callback

__version__ = "0.1.0"

__all__ = ["Callback", "Policy", "Run", "evaluate", "load_config", "load_policy", "resume", "train"]

_MODULES = {
    "Callback": "actorlearner.callbacks",
    "Policy": "actorlearner.acting.saved_policy",
    "evaluate": "actorlearner.acting.saved_policy",
    "load_policy": "actorlearner.acting.saved_policy",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES.get(name, "actorlearner.api")), name)
