"""User code that runs on a run's events: subclass Callback and name the class in the configuration.

callbacks: [my_module:MyCallback]
"""

from actorlearner.callbacks.callback import (
    Callback,
    Checkpoint,
    Context,
    Episode,
    Evaluation,
    Publication,
)

__all__ = ["Callback", "Checkpoint", "Context", "Episode", "Evaluation", "Publication"]
