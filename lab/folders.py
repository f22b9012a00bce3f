"""Where things are in the checkout: its root, and the folder of each stage."""

import re
from pathlib import Path

from lab.errors import LabError

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "out"
"""Where the commands leave pictures and histories; git ignores it and `make clean` deletes it."""


def stages(root: Path = ROOT) -> dict[int, Path]:
    """Return the stages' folders by number, in order: {0: …/00-the-bug, 1: …}."""
    folders = (path for path in root.glob("[0-9][0-9]-*") if path.is_dir())
    return {int(path.name[:2]): path for path in sorted(folders)}


def stage(number: str | int, root: Path = ROOT) -> Path:
    """Return the folder of a stage.

    Args:
        number: 3, "3" or "03".
        root: the checkout.

    Raises:
        LabError: there is no such stage; the remedy lists those that exist.
    """
    found = stages(root)
    if re.fullmatch(r"\d{1,2}", str(number)) and int(number) in found:
        return found[int(number)]
    names = ", ".join(f"{n} ({path.name[3:]})" for n, path in found.items())
    raise LabError(f"There is no stage {number}.", f"The stages are {names}.")
