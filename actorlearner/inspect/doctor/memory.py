"""Memory for replay and for the processes of local mode."""

from actorlearner.inspect.doctor.result import Result, ok, warn
from actorlearner.inspect.doctor.subject import Subject
from actorlearner.process.cores import collect_actors

_OTHER_ROLES = 3
"""Replay server, eval actor and learner."""


def check_memory(subject: Subject) -> Result:
    """Whether a full replay fits, as its server will ask, and the libraries in all the processes as well.

    Raises:
      ConfigurationError: the replay does not fit.
    """
    from actorlearner.process.memory import available_bytes
    from actorlearner.records.run_directory import RunDirectory
    from actorlearner.replay import footprint
    from actorlearner.replay.checkpoints import saved_transitions
    from actorlearner.replay.item_memory import size

    config, layout = subject.config, subject.layout
    saved = saved_transitions(RunDirectory(subject.run_dir).replay_checkpoints)
    footprint.check_memory(config, layout, saved)
    available = available_bytes()
    replay = footprint.experience_bytes(config.replay.capacity, layout)
    count = _OTHER_ROLES + collect_actors(config.collect)
    processes = count * footprint.PROCESS_BYTES
    found = f"replay {size(replay)}, {count} processes {size(processes)}; {size(available)} available"
    if replay + processes > available:
        return warn(f"{found}: lower replay.capacity or collect.actors, or run roles elsewhere")
    return ok(found)
