"""Makes the tables, once, before anything else runs: python load_schema.py

**Stops:** replicas that make their own tables, and race. Here one process does it, in one
transaction.
**Lets through:** a change of the tables later on; that is what a migration tool is for.
"""

import os
import sys
from pathlib import Path

import psycopg

from lab.world import community

WORLD = Path(community.__file__).parent
HERE = Path(__file__).parent
SCRIPTS = [folder / name for folder in (WORLD, HERE) for name in ("schema.sql", "seed.sql")]


def load() -> str:
    """Run the scripts if there are no tables yet; returns what it did."""
    with psycopg.connect(os.environ["DATABASE_URL"]) as conn:
        if conn.execute("SELECT to_regclass('members')").fetchone()[0]:
            return "the tables are there already"
        for script in SCRIPTS:
            conn.execute(script.read_text("utf-8"))
    return "tables made"


if __name__ == "__main__":
    if "DATABASE_URL" not in os.environ:
        sys.exit("DATABASE_URL is not set, so there is no database for the tables.\n"
                 "Set it to the URL of an empty one.")
    print(load())
