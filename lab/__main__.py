"""Lets `python -m lab` be the command line."""

import _thread
import signal
import sys
import threading

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
        threading.Timer(0.01, interrupt).start()  # not here: it would be dropped again
    else:
        sys.__unraisablehook__(lost)


sys.unraisablehook = interrupt_again
code = main()
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)  # all is done; Python's own end has nothing to clean up
sys.exit(code)
