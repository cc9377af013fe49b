"""Calls a run's callbacks on a thread of their own, so that the roles never wait for them."""

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator

from actorlearner.callbacks.callback import Callback, Checkpoint, Context, Episode, Evaluation, Publication
from actorlearner.config.own_code import load_own
from actorlearner.config.problems import problem, show
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError, RunError, one_line
from actorlearner.process.heartbeat import LONG_PATIENCE_S, beat
from actorlearner.records.notify import warn
from actorlearner.records.run_directory import RunDirectory

_log = logging.getLogger(__name__)

Event = Episode | Evaluation | Publication | Checkpoint

_HOOKS = {
    Episode: "on_episode",
    Evaluation: "on_evaluation",
    Publication: "on_publish",
    Checkpoint: "on_checkpoint",
}
_MAX_QUEUED = 1_000
"""Events that are queued for slow callbacks before further events are dropped."""

CLOSE_S = 30.0
"""Seconds for callbacks to finish at the end of a run."""

STOP_S = 1.0
"""Seconds for callbacks to finish after a signal, which must end the whole role soon."""


def find_callback(name: str) -> Callable[[Context], Callback]:
    """Imports the callback class `name`, given as module:Class. The import may print.

    Raises:
      ConfigurationError: the class cannot be imported or is not a Callback.
    """
    allowed = "module:Class of a subclass of actorlearner.callbacks.Callback"
    found = load_own(name, "callbacks", allowed)
    if not (isinstance(found, type) and issubclass(found, Callback)):
        raise ConfigurationError([problem("callbacks", f"{show(name)} is no Callback", allowed)])
    return found


class Callbacks:
    """The callbacks of one role and their queue of events."""

    def __init__(self, config: Config, role: str) -> None:
        """Imports the callbacks that the configuration names.

        Args:
          config: the run's configuration.
          role: learner, eval-actor, or collect-actor-<i>.

        Raises:
          ConfigurationError: a callback cannot be imported.
        """
        self._config = config
        self._role = role
        self._classes = {name: find_callback(name) for name in config.callbacks}
        self._callbacks: dict[str, Callback] = {}
        self._events: queue.Queue[Event | None] = queue.Queue(_MAX_QUEUED)
        self._dropped = 0
        self._warned: set[str] = set()
        self._thread = threading.Thread(target=self._call_hooks, name="callbacks", daemon=True)

    def begin(self, directory: RunDirectory) -> None:
        """Creates the callbacks, which blocks, and starts to call them. The run id must be known by now.

        Raises:
          RunError: a callback's `__init__` raised.
        """
        for name, make in self._classes.items():
            beat(f"creating callback {name}", patience_s=LONG_PATIENCE_S)
            context = Context(self._role, directory.run_id or "", directory.path, self._config)
            try:
                self._callbacks[name] = make(context)
            except Exception as error:  # User code may raise anything.
                _log.exception("callback %s", name)
                raise RunError(f"callback {name} cannot be created: {one_line(error)}") from error
        if self._callbacks:
            self._thread.start()

    def notify(self, event: Event) -> None:
        """Queues an event for the callbacks. Does not block; a no-op before `begin`."""
        if not self._callbacks:
            return
        try:
            self._events.put_nowait(event)
        except queue.Full:
            self._dropped += 1
            if self._dropped == 1:
                warn(
                    f"the callbacks are too slow: {_MAX_QUEUED:,} events are queued, further ones are dropped"
                )

    def close(self, *, stopped: bool) -> None:
        """Calls the callbacks for all queued events and closes them; blocks for CLOSE_S at most.

        Args:
          stopped: whether a signal ends the role; then it blocks for STOP_S at most.
        """
        timeout_s = STOP_S if stopped else CLOSE_S
        if not self._callbacks:
            return
        deadline = time.monotonic() + timeout_s
        with contextlib.suppress(queue.Full):
            self._events.put(None, timeout=timeout_s)
        self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive():
            warn(f"the callbacks did not finish within {timeout_s:g} s; events still queued are dropped")
        if self._dropped:
            warn(f"{self._dropped:,} events were dropped because the callbacks are too slow")

    def _call_hooks(self) -> None:
        while (event := self._events.get()) is not None:
            hook = _HOOKS[type(event)]
            for name, callback in self._callbacks.items():
                with self._surviving(f"{name}.{hook}"):
                    getattr(callback, hook)(event)
        for name, callback in self._callbacks.items():
            with self._surviving(f"{name}.close"):
                callback.close()

    @contextlib.contextmanager
    def _surviving(self, hook: str) -> Iterator[None]:
        """Catches what user code raises: logs it each time, and warns the first time."""
        try:
            yield
        except Exception as error:
            _log.exception("callback %s", hook)
            if hook not in self._warned:
                self._warned.add(hook)
                warn(f"callback {hook} raised {one_line(error)}; the run continues")
