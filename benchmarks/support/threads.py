"""The TensorFlow threads of a measuring process, set and described."""

from actorlearner.config.schema import Config
from actorlearner.process.cores import cores
from actorlearner.process.tensorflow_setup import limit_tensorflow, use_all_cores

DEFAULTS = "TensorFlow's default threads"
OF_AN_ACTOR = "1 TensorFlow thread"


def like_a_learner(config: Config) -> str:
    """Gives this process the threads of our learner; call before any other TensorFlow call.

    Returns:
      A description, for `Row.settings`.
    """
    use_all_cores(config.learn.intra_op_threads)
    return of_a_learner(config)


def of_a_learner(config: Config) -> str:
    """Describes the threads of our learner, for `Row.settings`."""
    return f"TensorFlow threads: {config.learn.intra_op_threads} intra-op, {cores()} inter-op"


def like_an_actor() -> str:
    """Gives this process the threads of our collect actor; as `like_a_learner`."""
    limit_tensorflow(threads=1)
    return OF_AN_ACTOR
