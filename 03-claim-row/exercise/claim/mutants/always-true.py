"""The claim: a row that reserves a slot, in the transaction of the work that it stands for."""

from sqlalchemy import text
from sqlalchemy.orm import Session


def claim_run(db: Session, name: str, key: str) -> bool:
    """Reserve (name, key); True if it is ours, False if it was taken. The caller commits."""
    db.execute(text(
        "INSERT INTO worker_runs (name, key) VALUES (:name, :key) ON CONFLICT DO NOTHING"),
        {"name": name, "key": key})
    return True
