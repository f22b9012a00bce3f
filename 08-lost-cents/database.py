"""Connections, which every version needs.

**Stops:** nothing.
**Lets through:** nothing.
"""

import os

import psycopg


def connect() -> psycopg.Connection:
    """A new connection to DATABASE_URL. As a context manager it commits, or rolls back on errors."""
    return psycopg.connect(os.environ["DATABASE_URL"], prepare_threshold=None)
