"""The claim: a row that reserves a slot, in the transaction of the work that it stands for."""

from sqlalchemy import text
from sqlalchemy.orm import Session


def claim_run(db: Session, name: str, key: str) -> bool:
    """Reserve (name, key); True if it is ours, False if it was taken. The caller commits."""
    return db.scalar(text("SELECT pg_try_advisory_xact_lock(hashtext(:slot))"),
                     {"slot": f"{name} {key}"})
