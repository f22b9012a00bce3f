"""Connections, which every version needs.

**Stops:** nothing.
**Lets through:** nothing.
"""

import os

import psycopg


def connect() -> psycopg.Connection:
    """A new connection to DATABASE_URL. A with block of it commits, or rolls back."""
    return psycopg.connect(os.environ["DATABASE_URL"], prepare_threshold=None)
