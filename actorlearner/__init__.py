"""actorlearner: an actor-learner distributed trainer for reinforcement learning over Reverb.

Importing this package imports neither TensorFlow nor Reverb, so that a command line is checked and
refused in a fraction of a second.
"""

__version__ = "0.1.0"
