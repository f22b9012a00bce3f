"""What the tests share: one Postgres for the whole session."""

import pytest

from lab.engine import postgres


@pytest.fixture(scope="session")
def server():
    """The Postgres that `lab.engine.postgres.server` answers with."""
    with postgres.server() as used:
        yield used
