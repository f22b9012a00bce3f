"""How each kind of bar and of point is drawn on a timeline."""

from __future__ import annotations

from collections.abc import Collection

from matplotlib.artist import Artist
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from lab.show.picture import BAD, INK, MUTED

__all__ = ["keys_of", "look_of", "mark_of"]

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


def keys_of(used: Collection[str], signs: Collection[str]) -> list[tuple[Artist, str]]:
    """The keys of a legend, each with its name, of what a picture uses.

    Args:
        used: looks of bars, kinds of points, "lock" and "violation".
        signs: what stands on its violations.
    """
    keys: list[tuple[Artist, str]] = [(Patch(**look_of(look, MUTED)), name)
                                      for look, name in LOOKS.items() if look in used]
    if "lock" in used:
        keys.append((Patch(fc="white", ec=MUTED, lw=2.4), "holds a lock"))
    keys += [(Line2D([], [], ls="", **mark_of(kind, MUTED, 17)), name)
             for kind, name in NAMES.items() if kind in used]
    if "violation" in used:
        counted = any(sign.endswith("×") for sign in signs)
        keys.append((Patch(fc="white", ec=BAD, lw=5),
                     "violation (2× = second time)" if counted else "violation"))
    return keys
