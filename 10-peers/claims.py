"""The claim: a row that reserves a slot, in the transaction of the work that it stands for.

**Stops:** a second run of a name and key. A rival's INSERT waits for the first transaction, gets no
row if that commits, and takes the slot over if it rolls back.
**Lets through:** work that failed without raising: its claim is committed as if it had been done.
"""

from sqlalchemy import text
from sqlalchemy.orm import Session


def claim_run(db: Session, name: str, key: str) -> bool:
    """Reserve (name, key); True if it is ours, False if it was taken. The caller commits.

    Raises OperationalError (40001) under REPEATABLE READ if a rival committed after our snapshot.
    """
    claimed = db.scalar(text(
        "INSERT INTO worker_runs (name, key) VALUES (:name, :key)"
        " ON CONFLICT (name, key) DO NOTHING RETURNING 1"), {"name": name, "key": key})
    return claimed is not None
