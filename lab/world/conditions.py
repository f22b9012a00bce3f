"""The world as files: the tables, the rows they start with, and the named changes of the scenarios.

Apart from `lab.world.community`, so that the engine need not import SQLAlchemy to start a run.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

__all__ = ["SCHEMA", "SEED", "conditions"]

HERE = Path(__file__).parent
SCHEMA = HERE / "schema.sql"
SEED = HERE / "seed.sql"


def conditions() -> dict[str, list[str]]:
    """The named changes to the world that scenarios apply: name -> SQL statements."""
    text = (HERE / "conditions.toml").read_text(encoding="utf-8")
    return {name: condition["sql"] for name, condition in tomllib.loads(text).items()}
