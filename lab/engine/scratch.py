"""Temporary folders that carry their machine and process, so that a killed one's can be found."""

import os
import platform
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path

# A container that shares the folder has its own name, and its own numbers of processes.
OURS = "lab-scratch-" + re.sub(r"\W", "_", platform.node() or "localhost")
NAME = re.compile(re.escape(OURS) + r"-(\d+)-")


def folder() -> tempfile.TemporaryDirectory:
    """A temporary folder; it goes when the program ends, unless the program is killed."""
    return tempfile.TemporaryDirectory(prefix=f"{OURS}-{os.getpid()}-", ignore_cleanup_errors=True)


def sweep() -> int:
    """Delete the folders of processes that are no more; returns how many there were."""
    import psutil

    deleted = 0
    for path in Path(tempfile.gettempdir()).glob(f"{OURS}-*"):
        owner = NAME.match(path.name)
        if owner and not psutil.pid_exists(int(owner[1])):
            shutil.rmtree(path, ignore_errors=True)  # another user's stay
            deleted += not path.exists()
    return deleted


@cache
def sweep_once() -> int:
    """`sweep`, the first time that this process asks for it."""
    return sweep()
