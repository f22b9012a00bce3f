"""How each kind of bar and of point is drawn on a timeline."""

from __future__ import annotations

from matplotlib.colors import to_rgb

from lab.show.picture import INK, MUTED

__all__ = ["LOOKS", "NAMES", "look_of", "mark_of"]

# What the legend calls them.
NAMES = {"commit": "COMMIT", "rollback": "ROLLBACK", "kill": "killed", "cut": "connection cut",
         "freeze": "frozen", "thaw": "goes on"}
LOOKS = {"ran": "statement", "undone": "undone", "waiting": "waiting", "no-row": "got no row",
         "error": "error", "lost": "no answer"}


def look_of(look: str, colour: str) -> dict:
    """How a bar is drawn; each look differs in more than its colour."""
    return {"ran": {"fc": colour, "ec": INK, "lw": 1.6},
            "undone": {"fc": _pale(colour), "ec": MUTED, "lw": 1.6},
            "waiting": {"fc": "white", "ec": colour, "hatch": "///", "lw": 1.6},
            "no-row": {"fc": "white", "ec": INK, "ls": (0, (3, 2)), "lw": 2.2},
            "error": {"fc": "white", "ec": INK, "hatch": "xx", "lw": 1.6},
            "lost": {"fc": "white", "ec": INK, "ls": ":", "lw": 2.2}}[look]


def _pale(colour: str) -> tuple[float, ...]:
    return tuple(0.8 + 0.2 * part for part in to_rgb(colour))


def mark_of(kind: str, colour: str, size: int = 25) -> dict:
    """How a point is drawn: solid for a commit, open for a rollback, a sign for a fault."""
    sign = {"commit": "D", "rollback": "D", "kill": "X", "cut": "$\u2702$", "freeze": "$\u2744$",
            "thaw": "o"}[kind]
    face = {"commit": colour, "rollback": "white", "thaw": "white"}.get(kind, INK)
    return {"marker": sign, "ms": size, "mfc": face, "mec": INK,
            "mew": 2 if kind in ("commit", "rollback", "thaw") else 0.8}
