"""Temporary folders that carry the number of their process, so that a killed one's can be found."""

import os
import re
import shutil
import tempfile
from pathlib import Path

NAME = re.compile(r"lab-(\d+)-")


def folder() -> tempfile.TemporaryDirectory:
    """A temporary folder; it goes when the program ends, unless the program is killed."""
    return tempfile.TemporaryDirectory(prefix=f"lab-{os.getpid()}-", ignore_cleanup_errors=True)


def sweep() -> int:
    """Delete the folders of processes that are no more; returns how many there were."""
    import psutil

    deleted = 0
    for path in Path(tempfile.gettempdir()).glob("lab-*"):
        owner = NAME.match(path.name)
        if owner and not psutil.pid_exists(int(owner[1])):
            shutil.rmtree(path, ignore_errors=True)  # another user's stay
            deleted += not path.exists()
    return deleted
