"""The signals that a Slurm job gets."""

import signal

_SIGNALS = {signal.SIGUSR1, signal.SIGTERM, signal.SIGINT}
_TICK_S = 1.0


def block() -> None:
    """Blocks the signals, so that only `wait` receives them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)


def unblock() -> None:
    """Undoes `block`, in a new process."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def wait(timeout_s: float = _TICK_S) -> int:
    """Blocks until a signal arrives, at most `timeout_s`; returns its number, 0 without one."""
    received = signal.sigtimedwait(_SIGNALS, timeout_s)
    return received.si_signo if received else 0
