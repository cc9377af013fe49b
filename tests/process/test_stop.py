"""Requests to stop: from any thread, and from signals in a process of their own."""

import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from actorlearner.process.stop import Stop
from tests.support.processes import REPOSITORY


def test_nothing_is_requested_at_first() -> None:
    stop = Stop()
    assert not stop.requested
    assert not stop.wait(0.01)
    assert stop.exit_code == 0


def test_a_request_stays() -> None:
    stop = Stop()
    stop.request()
    assert stop.wait(60.0)
    assert stop.requested
    assert stop.requested
    assert stop.exit_code == 0  # The work was done: no signal came.


def test_a_request_may_name_the_signal_of_another_process() -> None:
    stop = Stop()
    stop.request(signal.SIGTERM)
    assert stop.requested
    assert stop.exit_code == 143
    stop.request(signal.SIGINT)
    assert stop.exit_code == 143  # The first counts, as with signals.


def test_many_requests_do_not_block() -> None:
    stop = Stop()
    for _ in range(100_000):  # More than a pipe holds.
        stop.request()
    assert stop.requested


def test_a_request_wakes_all_that_wait() -> None:
    stop = Stop()
    woken: list[bool] = []
    threads = [threading.Thread(target=lambda: woken.append(stop.wait(60.0))) for _ in range(3)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    stop.request()
    for thread in threads:
        thread.join()
    assert woken == [True] * 3
    assert time.monotonic() - started < 30


def test_several_stops_are_independent() -> None:
    one, other = Stop(), Stop()
    one.request()
    assert not other.requested


def run_script(body: str) -> subprocess.CompletedProcess[str]:
    script = "import os, signal, threading\nfrom actorlearner.process.stop import Stop\n" + textwrap.dedent(
        body
    )
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        # Under nohup it would be ignored, there and in what is started.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 143)])
def test_a_signal_requests_the_stop(name: str, code: int) -> None:
    result = run_script(
        f"""
        stop = Stop()
        stop.install()
        os.kill(os.getpid(), signal.{name})
        assert stop.wait(30.0) and stop.requested
        print(stop.exit_code)
        """
    )
    assert (result.stdout, result.stderr, result.returncode) == (f"{code}\n", "", 0)


def test_a_signal_ends_a_wait_that_has_begun() -> None:
    script = (
        "from actorlearner.process.stop import Stop; stop = Stop(); stop.install(); "
        "print('waits', flush=True); "
        "print(stop.wait(60.0), stop.exit_code)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "True 143\n"
    assert process.returncode == 0


def test_a_signal_that_does_not_interrupt_the_wait_ends_it() -> None:
    # The kernel may give a signal to any thread that does not block it; the select of the main one goes on.
    result = run_script(
        """
        stop = Stop()
        stop.install()
        other = threading.Thread(target=stop.wait, args=[120.0])
        other.start()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGTERM]).start()
        waited = stop.wait(50.0)
        print(waited, stop.exit_code)
        other.join()
        """
    )
    assert (result.stdout, result.stderr, result.returncode) == ("True 143\n", "", 0)


def test_other_signals_request_no_stop() -> None:
    # For example of a simulator's timer. Python's signal handlers are woken by the same pipe, which is full.
    result = run_script(
        """
        stop = Stop()
        stop.install()
        alarms = []

        def alarm(number, frame):
            alarms.append(number)
            if len(alarms) == 3:
                os.kill(os.getpid(), signal.SIGINT)

        signal.signal(signal.SIGALRM, alarm)
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        waited = stop.wait(50.0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(waited, stop.exit_code, len(alarms) > 2)
        stop = Stop()
        stop.install()
        for _ in range(70_000):
            os.kill(os.getpid(), signal.SIGALRM)
        os.kill(os.getpid(), signal.SIGTERM)
        print(stop.wait(30.0), stop.requested, stop.exit_code)
        """
    )
    assert (result.stdout, result.stderr) == ("True 130 True\nTrue True 143\n", "")


def test_the_first_signal_decides_and_later_ones_change_nothing() -> None:
    result = run_script(
        """
        stop = Stop()
        stop.install()
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(100):
            os.kill(os.getpid(), signal.SIGINT)
        assert stop.wait(30.0)
        print(stop.exit_code)
        """
    )
    assert (result.stdout, result.stderr) == ("143\n", "")


def test_a_signal_after_the_work_was_done_counts() -> None:
    result = run_script(
        """
        stop = Stop()
        stop.install()
        stop.request()
        os.kill(os.getpid(), signal.SIGINT)
        print(stop.exit_code)
        """
    )
    assert result.stdout == "130\n"


def test_another_thread_sees_a_signal() -> None:
    result = run_script(
        """
        stop = Stop()
        stop.install()
        seen = []
        thread = threading.Thread(target=lambda: seen.append(stop.wait(30.0)))
        thread.start()
        os.kill(os.getpid(), signal.SIGINT)
        thread.join()
        print(seen)
        """
    )
    assert (result.stdout, result.stderr) == ("[True]\n", "")


def test_nohup_is_respected() -> None:
    result = run_script(
        """
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        stop = Stop()
        stop.install()
        os.kill(os.getpid(), signal.SIGHUP)
        print(stop.requested)
        """
    )
    assert (result.stdout, result.stderr, result.returncode) == ("False\n", "", 0)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_to_a_forked_process_ends_that_process_alone(name: str) -> None:
    # Killed at once, as by multiprocessing.Process.terminate, and again when it has begun its work.
    result = run_script(
        f"""
        import multiprocessing, time
        stop = Stop()
        stop.install()
        reader, writer = os.pipe()

        def work():
            os.write(writer, b"begun")
            time.sleep(60)

        for wait_until_it_works in (False, True):
            worker = multiprocessing.get_context("fork").Process(target=work)
            worker.start()
            if wait_until_it_works:
                os.read(reader, 5)
            os.kill(worker.pid, signal.{name})
            worker.join()
            print(worker.exitcode, stop.requested)
        os.kill(os.getpid(), signal.{name})
        print(stop.requested)
        """
    )
    code = -signal.Signals[name]
    assert result.stdout == f"{code} False\n{code} False\nTrue\n", result.stderr


def test_nothing_is_handled_before_install() -> None:
    result = run_script("stop = Stop()\nos.kill(os.getpid(), signal.SIGTERM)\nstop.wait(30.0)")
    assert result.returncode == -signal.SIGTERM


def test_this_process_keeps_its_handlers() -> None:
    before = signal.getsignal(signal.SIGINT)
    Stop()
    assert signal.getsignal(signal.SIGINT) == before
