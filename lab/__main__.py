"""Lets `python -m lab` be the command line."""

import sys

from lab.cli import main

sys.exit(main())
