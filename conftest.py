"""What the tests of the bench and of the stages share: one Postgres for the whole session."""

import os
import random
import shutil
import signal
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from lab.engine import datadir, embedded, postgres
from lab.judge.scenarios import theatre
from lab.judge.stage import stage

# A job in the background ignores SIGINT, and so would every process that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Chosen once, for all the processes that share the tests: it picks their cases.
os.environ.setdefault("LAB_SEED", str(random.randrange(10**6)))


def pytest_configure(config):
    """Where several processes share the tests (make test JOBS=…), give each a server of its own."""
    if not hasattr(config, "workerinput") or os.environ.get("DATABASE_URL"):
        return
    home = Path(tempfile.mkdtemp(prefix="lab-test-"))
    home.chmod(0o711)  # Postgres' own user goes through it
    os.environ |= {"TMPDIR": str(home), "XDG_CACHE_HOME": str(home)}
    tempfile.tempdir = str(home)

    def remove():
        with embedded.gate():
            embedded.stop()
            datadir.remove()
        shutil.rmtree(home, ignore_errors=True)

    config.add_cleanup(remove)


@pytest.fixture(scope="session")
def server():
    """The Postgres that `lab.engine.postgres.server` answers with."""
    with postgres.server() as used:
        yield used


@pytest.fixture(scope="module")
def theatre_of(server):
    """The theatre of a stage by its number, opened once a module; see `lab.judge.scenarios`."""
    with ExitStack() as stack:
        opened = {}

        def of(number):
            if number not in opened:
                opened[number] = stack.enter_context(theatre(stage(number), server))
            return opened[number]

        yield of
