"""Lets `python -m lab` be the command line."""

import signal
import sys

from lab.cli import main

code = main()
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)  # all is done; Python's own end has nothing to clean up
sys.exit(code)
