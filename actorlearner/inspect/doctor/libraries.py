"""Loading TensorFlow with Reverb, and the devices that it sees."""

from pathlib import Path

from actorlearner.inspect.doctor.result import Result, ok, warn
from actorlearner.inspect.doctor.subject import Subject
from actorlearner.process.imports import without_gc

_DEVICES = Path("/dev")
_NVIDIA = "nvidia[0-9]*"


def check_libraries(subject: Subject) -> Result:
    """Whether Reverb loads into TensorFlow: one that does not fit shows only here, as a missing symbol."""
    with without_gc():
        import reverb  # noqa: F401
        import tensorflow as tf
        import tf_agents

    return ok(f"Reverb loads into TensorFlow {tf.__version__}, with TF-Agents {tf_agents.__version__}")


def check_gpus(subject: Subject) -> Result:
    """Which GPUs TensorFlow sees; none is needed."""
    import tensorflow as tf

    seen = tf.config.list_physical_devices("GPU")
    if seen:
        names = [tf.config.experimental.get_device_details(gpu).get("device_name", gpu.name) for gpu in seen]
        return ok(f"{len(seen)}, for the learner: {', '.join(names)}")
    present = sorted(path.name for path in _DEVICES.glob(_NVIDIA))
    if present:
        return warn(
            f"/dev has {', '.join(present)}, but TensorFlow sees no GPU: pip install "
            f"'tensorflow[and-cuda]=={tf.__version__}', with a driver that is new enough for it"
        )
    return ok("none here, the learner trains on the processor")
