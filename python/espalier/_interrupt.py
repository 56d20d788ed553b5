"""Ctrl-C during calls: Python's handler runs only after a call has ended, so a thread ends the call before."""
import os
import signal
import threading

_watching = False


def end_calls_on_interrupt(communicators):
    """Watches for SIGINT from now on where that is Python's to handle; asyncio's own way to learn of it stays.

    >>> from espalier._interrupt import end_calls_on_interrupt
    >>> end_calls_on_interrupt([])
    """
    global _watching
    if _watching or threading.current_thread() is not threading.main_thread():
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    former = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    if former != -1:
        signal.set_wakeup_fd(former)
        os.close(reading)
        os.close(writing)
        return
    _watching = True
    threading.Thread(target=_watch, args=(reading, communicators), daemon=True).start()


def _watch(reading, communicators):
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # Those of children are for `run`, in its thread.
    while numbers := os.read(reading, 16):
        if signal.SIGINT not in numbers or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            continue
        for communicator in list(communicators):
            if communicator._calls:
                communicator.abort("interrupted")
