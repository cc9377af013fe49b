"""Your own code at what happens in a run: subclass Callback and name it in the configuration.

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
