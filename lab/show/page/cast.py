"""Who may take part in a run on the page."""

from __future__ import annotations

from collections.abc import Iterable

from lab.errors import LabError
from lab.judge.stage import Stage

__all__ = ["at_first", "company"]

ROOM = "ABC"
MOST = 6  # replicas side by side; more do not fit on a screen


def at_first(stage: Stage) -> str:
    """The letters of the replicas with which a stage begins: three, or as many as it says."""
    return ROOM[:stage.data.get("replicas", len(ROOM))]


def company(letters: Iterable[str]) -> str:
    """These letters in order, each once.

    Raises:
        LabError: they are none, too many, or no letters of replicas.
    """
    found = "".join(sorted(set(letters)))
    if not 1 <= len(found) <= MOST or not found.isalpha() or not found.isupper():
        raise LabError(f"“{found}” are not the letters of one to {MOST} replicas.",
                       "Name them A, B, C, …")
    return found
