"""Lets `python -m lab` be the command line."""

import _thread
import signal
import sys
import threading
import time

from lab.cli import main


def interrupt() -> None:
    """Interrupt the main thread, even where it waits (not on Windows)."""
    if sys.platform == "win32":
        _thread.interrupt_main()
    else:
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


def interrupt_again(lost) -> None:
    """Let an interrupt that came in the middle of a destructor, where Python drops it, come again.

    Args:
        lost: what `sys.unraisablehook` gets.
    """
    if lost.exc_type is KeyboardInterrupt:
        threading.Thread(target=interrupt_later, daemon=True).start()
    else:
        sys.__unraisablehook__(lost)


def interrupt_later() -> None:
    """Interrupt the main thread once it has left `interrupt_again`, where it would be dropped."""
    frame = sys._current_frames()[threading.main_thread().ident]
    while frame:
        if frame.f_code is interrupt_again.__code__:
            time.sleep(0.001)  # polls: no thread is told where another one is
            frame = sys._current_frames()[threading.main_thread().ident]
        else:
            frame = frame.f_back
    interrupt()


sys.unraisablehook = interrupt_again
code = main()
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)  # all is done; Python's own end has nothing to clean up
sys.exit(code)
