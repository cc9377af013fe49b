"""Checks of the machine: platform, package versions, libraries, GPUs and network."""

import importlib.metadata
import platform
import socket
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

from actorlearner.inspect.doctor.check import CheckedExperiment, Result, fail, ok, warn
from actorlearner.network.ports import LOOPBACK, free_port
from actorlearner.process.cores import cores
from actorlearner.process.tensorflow_setup import without_gc
from actorlearner.records.manifest import installed_version

_SYSTEM = "Linux x86_64"
_PYTHON = "CPython 3.11"
_CPUINFO = Path("/proc/cpuinfo")


def check_platform(experiment: CheckedExperiment) -> Result:
    """Checks that Reverb and TensorFlow have wheels for this platform."""
    system = f"{platform.system()} {platform.machine()}"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    if system != _SYSTEM:
        return fail(f"this is {system}, but Reverb has wheels for {_SYSTEM} only: use such a machine")
    if not python.startswith(f"{_PYTHON}."):
        return fail(f"this is {python}, but Reverb's newest Python is {_PYTHON}: make .venv with that")
    if "avx" not in _processor_flags():
        return fail("the processor has no AVX, which TensorFlow's wheels need: use a newer one")
    return ok(f"{python}, {system}, {cores()} cores")


def _processor_flags() -> set[str]:
    return set(_CPUINFO.read_text(encoding="ascii", errors="replace").split())


_PACKAGE = "actorlearner"
_REVERB = "dm-reverb"
_TENSORFLOW = "tensorflow"
_COMPILED_TOGETHER = (_TENSORFLOW, _REVERB, "tf-agents")
_REPAIR = (
    "make setup, or pip install -r requirements.lock; add other packages with pip freeze --exclude-editable "
    "> installed.txt, then pip install -c installed.txt NAME"
)


def check_versions(experiment: CheckedExperiment) -> Result:
    """Checks that every pin is kept, and that TensorFlow is the version that Reverb was compiled against."""
    missing = [name for name in _COMPILED_TOGETHER if installed_version(name) is None]
    if missing:
        return fail(f"{', '.join(missing)} not installed: {_REPAIR}")
    for needed in _requirements(_REVERB, extra=_TENSORFLOW):
        if not _is_met(needed):
            return fail(f"{_REVERB} {installed_version(_REVERB)} needs {_beside(needed)}: {_REPAIR}")
    try:
        pins = list(_requirements(_PACKAGE))
    except importlib.metadata.PackageNotFoundError:
        return warn(f"{_PACKAGE} is not installed, so its pins are unknown: make setup")
    broken = [pin for pin in pins if not _is_met(pin)]
    if not broken:
        return ok(f"all pins are kept, among them {_TENSORFLOW} {installed_version(_TENSORFLOW)}")
    # Other versions of the remaining packages may work, but are untested.
    grave = any(pin.name in _COMPILED_TOGETHER or installed_version(pin.name) is None for pin in broken)
    found = f"{', '.join(map(_beside, broken))}: {_REPAIR}"
    return fail(found) if grave else warn(found)


def _requirements(package: str, extra: str = "") -> Iterator[Requirement]:
    """Yields the requirements of an installed package with one of its extras, on this platform."""
    for text in importlib.metadata.requires(package) or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement


def _is_met(requirement: Requirement) -> bool:
    installed = installed_version(requirement.name)
    return installed is not None and requirement.specifier.contains(installed, prereleases=True)


def _beside(requirement: Requirement) -> str:
    """Returns a requirement and the installed version, as text."""
    here = installed_version(requirement.name) or "none"
    return f"{requirement.name}{requirement.specifier} (here: {here})"


_DEVICES = Path("/dev")
_NVIDIA = "nvidia[0-9]*"


def check_libraries(experiment: CheckedExperiment) -> Result:
    """Checks that Reverb loads into TensorFlow; a mismatch shows only here, as a missing symbol."""
    with without_gc():
        import reverb  # noqa: F401
        import tensorflow as tf
        import tf_agents

    return ok(f"Reverb loads into TensorFlow {tf.__version__}, with TF-Agents {tf_agents.__version__}")


def check_gpus(experiment: CheckedExperiment) -> Result:
    """Lists the GPUs that TensorFlow sees, and checks that `learn.xla` suits them; none is needed."""
    import tensorflow as tf

    xla = experiment.config.learn.xla
    seen = tf.config.list_physical_devices("GPU")
    if seen:
        names = [tf.config.experimental.get_device_details(gpu).get("device_name", gpu.name) for gpu in seen]
        found = f"{len(seen)}, for the learner: {', '.join(names)}"
        return ok(found if xla else f"{found}; learn.xla=true is faster there")
    present = sorted(path.name for path in _DEVICES.glob(_NVIDIA))
    if present:
        return warn(
            f"/dev has {', '.join(present)}, but TensorFlow sees no GPU: pip install "
            f"'tensorflow[and-cuda]=={tf.__version__}', with a driver that is new enough for it"
        )
    if xla:
        return warn("none here, and on the processor learn.xla=false is faster")
    return ok("none here, the learner trains on the processor")


def check_precision(experiment: CheckedExperiment) -> Result:
    """Checks that the learner's processor is fast at `learn.precision`; with a GPU, checks nothing."""
    import tensorflow as tf

    reduced = experiment.config.learn.precision == "bfloat16"
    units = sorted({"amx_bf16", "avx512_bf16"} & _processor_flags())
    if tf.config.list_physical_devices("GPU"):
        return ok(f"{experiment.config.learn.precision}, on the GPU")
    if not units:
        if reduced:
            return warn("the processor has no unit for bfloat16: learn.precision=float32 is faster here")
        return ok("float32; the processor has no unit for bfloat16")
    found = f"the processor has {units[0]}"
    return ok(f"bfloat16; {found}" if reduced else f"float32; {found}, so learn.precision=bfloat16 is faster")


_TIMEOUT_S = 5.0
_MESSAGE = b"actorlearner"


def check_network(experiment: CheckedExperiment) -> Result:
    """Checks that this machine can listen on a free port and connect to it.

    Raises:
      OSError: it cannot listen or connect.
    """
    port = free_port()
    with (
        socket.create_server(("", port)) as server,
        socket.create_connection((LOOPBACK, port), timeout=_TIMEOUT_S) as client,
    ):
        server.settimeout(_TIMEOUT_S)
        connection, _ = server.accept()
        with connection:
            connection.settimeout(_TIMEOUT_S)
            client.sendall(_MESSAGE)
            received = connection.recv(len(_MESSAGE), socket.MSG_WAITALL)
    if received != _MESSAGE:
        return fail(f"data sent to {LOOPBACK} did not arrive: check the packet filter")
    return ok(f"port {port} was free, and {LOOPBACK} can be reached")
