"""What the tests of the bench and of the stages share: one Postgres for the whole session."""

import signal
from contextlib import ExitStack

import pytest

from lab.engine import postgres
from lab.judge.scenarios import theatre
from lab.judge.stage import stage

# A job in the background ignores SIGINT, and so would every process that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


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
