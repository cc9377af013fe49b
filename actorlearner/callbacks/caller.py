"""Calls the callbacks of a run from its roles, without making these wait."""

import contextlib
import importlib
import logging
import queue
import threading
from collections.abc import Callable, Iterator

from actorlearner.callbacks.callback import (
    Callback,
    Checkpoint,
    Context,
    Episode,
    Evaluation,
    Publication,
)
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError, RunError, one_line
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
_WAITING = 1_000
"""Events that wait for slow callbacks, at most."""

CLOSE_S = 30.0
"""What callbacks get to close at the end of a run."""

STOP_S = 1.0
"""What they get after a signal: the whole role has to end soon."""


def find_callback(name: str) -> Callable[[Context], Callback]:
    """Imports the module of a callback, which may print.

    Args:
      name: module:Class.

    Returns:
      The class.

    Raises:
      ConfigurationError: there is none of that name, or it is no Callback.
    """
    module, _, attribute = name.partition(":")
    allowed = "allowed: module:Class of a subclass of actorlearner.callbacks.Callback"
    try:
        found = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # Of any code.
        raise ConfigurationError(
            [f"callbacks: {name!r} cannot be imported ({one_line(error)}); {allowed}"]
        ) from error
    if not (isinstance(found, type) and issubclass(found, Callback)):
        raise ConfigurationError([f"callbacks: {name!r} is not one; {allowed}"])
    return found


class Callbacks:
    """The callbacks in one role."""

    def __init__(self, config: Config, role: str) -> None:
        """Imports them.

        Args:
          config: of the run.
          role: the process: learner, eval-actor, or collect-actor-<i>.

        Raises:
          ConfigurationError: one cannot be imported.
        """
        self._config = config
        self._role = role
        self._classes = {name: find_callback(name) for name in config.callbacks}
        self._callbacks: dict[str, Callback] = {}
        self._events: queue.Queue[Event | None] = queue.Queue(_WAITING)
        self._left_out = 0
        self._complained: set[str] = set()
        self._thread = threading.Thread(target=self._call_for_ever, name="callbacks", daemon=True)

    def begin(self, directory: RunDirectory) -> None:
        """Makes them, once it is known which run this is, and begins to call them; blocks for that long.

        Raises:
          RunError: one raised.
        """
        for name, make in self._classes.items():
            context = Context(self._role, directory.run_id or "", directory.path, self._config)
            try:
                self._callbacks[name] = make(context)
            except Exception as error:  # Of any code.
                _log.exception("callback %s", name)
                raise RunError(f"callback {name} cannot be made: {one_line(error)}") from error
        if self._callbacks:
            self._thread.start()

    def tell(self, event: Event) -> None:
        """Has them called with what happened. Does not block; before `begin` nothing happens."""
        if not self._callbacks:
            return
        try:
            self._events.put_nowait(event)
        except queue.Full:
            self._left_out += 1
            if self._left_out == 1:
                warn(
                    f"the callbacks are too slow: {_WAITING:,} events wait for them, and others are left out"
                )

    def close(self, *, stopped: bool) -> None:
        """Has them called with what is left, and closed; blocks until then, for a while at most.

        Args:
          stopped: whether a signal ends the role, and not its last train step.
        """
        timeout_s = STOP_S if stopped else CLOSE_S
        if not self._callbacks:
            return
        with contextlib.suppress(queue.Full):
            self._events.put(None, timeout=timeout_s / 2)
        self._thread.join(timeout_s / 2)
        if self._thread.is_alive():
            warn(f"the callbacks were not done within {timeout_s:g} s; what is left for them is left out")
        if self._left_out:
            warn(f"{self._left_out:,} events were left out for the callbacks, which are too slow")

    def _call_for_ever(self) -> None:
        while (event := self._events.get()) is not None:
            hook = _HOOKS[type(event)]
            for name, callback in self._callbacks.items():
                with self._complaining(f"{name}.{hook}"):
                    getattr(callback, hook)(event)
        for name, callback in self._callbacks.items():
            with self._complaining(f"{name}.close"):
                callback.close()

    @contextlib.contextmanager
    def _complaining(self, what: str) -> Iterator[None]:
        """Says what user code raises the first time, and logs it each time."""
        try:
            yield
        except Exception as error:
            _log.exception("callback %s", what)
            if what not in self._complained:
                self._complained.add(what)
                warn(f"callback {what} raised {one_line(error)}; the run goes on")
